//! Quantities: what can be read has a written form that reads back as the same amount, and whose own
//! written form lasts. (Upstream's first form may not last: `62.5Ki` is written `64000`, and that `64k`.)
#![no_main]

use api::quantity::Quantity;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(first) = Quantity::parse(text) else { return };
    let written = first.canonical();
    let second = Quantity::parse(&written).expect("what was written can be read");
    assert_eq!(first.value(), second.value(), "{text}, written as {written}");
    let lasting = second.canonical();
    let third = Quantity::parse(&lasting).expect("what was written can be read");
    assert_eq!(lasting, third.canonical(), "{text}, written as {written}");
    let mut sum = first.clone();
    sum.add(&second);
    sum.sub(&first);
    let saturated = |amount: i64| amount == i64::MAX || amount == i64::MIN;
    assert!(sum.value() == second.value() || saturated(first.value()), "{text}");
});
