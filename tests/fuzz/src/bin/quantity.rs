//! Quantities: what can be read has one canonical form, and that form reads back as the same amount.
#![no_main]

use api::quantity::Quantity;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(first) = Quantity::parse(text) else { return };
    let canonical = first.canonical();
    let again = Quantity::parse(&canonical).expect("the canonical form can be read");
    assert_eq!(canonical, again.canonical(), "{text}");
    let mut sum = first.clone();
    sum.add(&again);
    sum.sub(&first);
    assert!(sum.value() == again.value() || first.value() == i64::MAX || first.value() == i64::MIN, "{text}");
});
