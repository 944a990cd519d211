use super::*;

#[test]
fn texts_read_and_print_as_in_go() {
    for (text, nanos, printed) in [
        ("0", 0, "0"),
        ("-", 0, "0"),
        (".", 0, "0"),
        ("0Ki", 0, "0"),
        ("0.0m", 0, "0"),
        ("1", NANO, "1"),
        ("1000m", NANO, "1"),
        ("0.5", NANO / 2, "500m"),
        ("0.500", NANO / 2, "500m"),
        ("1.5", 3 * NANO / 2, "1500m"),
        ("1.2345", 1_234_500_000, "1234500u"),
        ("1.5Gi", 1536 * (1 << 20) * NANO, "1536Mi"),
        ("0.5Ki", 512 * NANO, "512"),
        ("0.5Mi", 512 * 1024 * NANO, "512Ki"),
        ("1024Ki", (1 << 20) * NANO, "1Mi"),
        ("1025Ki", 1025 * 1024 * NANO, "1025Ki"),
        ("5Ei", 5 * (1 << 60) * NANO, "5Ei"),
        ("12E", 12 * 1_000_000_000_000_000_000 * NANO, "12E"),
        ("1000E", 1_000_000_000_000_000_000_000 * NANO, "1e21"),
        ("1e3", 1_000 * NANO, "1e3"),
        ("1E3", 1_000 * NANO, "1E3"),
        ("1e4", 10_000 * NANO, "10e3"),
        ("100e1", 1_000 * NANO, "1e3"),
        ("1e0", NANO, "1e0"),
        ("1e-3", NANO / 1_000, "1e-3"),
        ("100m", NANO / 10, "100m"),
        ("2500m", 2_500_000_000, "2500m"),
        ("0.0000000001", 1, "1n"),
        ("0.9n", 1, "1n"),
        ("-0.9n", -1, "-1n"),
        ("1.1n", 2, "2n"),
        ("1e-400", 1, "1e-9"),
        ("8Ei", i64::MAX as i128 * NANO, "9223372036854775807"),
        ("-1.5Gi", -1536 * (1 << 20) * NANO, "-1536Mi"),
        ("0.1Ki", 102_400_000_000, "102400m"),
        ("1.1Ki", 1_126_400_000_000, "1126400m"),
        ("0.0001Ki", 102_400_000, "102400u"),
        ("1.Gi", (1 << 30) * NANO, "1.Gi"),
        // Go keeps these as they came.
        ("+5", 5 * NANO, "+5"),
        ("05", 5 * NANO, "05"),
        ("1.500", 3 * NANO / 2, "1.500"),
        ("+12Ki", 12 * 1024 * NANO, "+12Ki"),
        // 19 digits are too many for that.
        (
            "1000000000000000001",
            1_000_000_000_000_000_001 * NANO,
            "1000000000000000001",
        ),
        (
            "18446744073709551616",
            18_446_744_073_709_551_616 * NANO,
            "18446744073709551616",
        ),
    ] {
        let quantity = Quantity::parse(text).unwrap();
        assert_eq!(quantity.nanos(), nanos, "{text}");
        assert_eq!(quantity.to_string(), printed, "{text}");
    }
}

#[test]
fn texts_that_are_no_quantity_are_refused_with_the_texts_of_kubernetes() {
    for (text, error) in [
        ("", ParseError::Shape),
        ("1e3Ki", ParseError::Shape),
        ("1.1.M", ParseError::Shape),
        ("1+1.0M", ParseError::Shape),
        ("aoeu", ParseError::Shape),
        (" 1", ParseError::Shape),
        ("1 ", ParseError::Shape),
        ("0.1mi", ParseError::Suffix),
        ("0.1am", ParseError::Shape),
        (".5i", ParseError::Suffix),
        ("1i", ParseError::Suffix),
        ("-3.01i", ParseError::Suffix),
        ("-3.01e-", ParseError::Suffix),
        ("1e", ParseError::Suffix),
        ("1K", ParseError::Suffix),
        ("1ki", ParseError::Suffix),
        ("1e1.5", ParseError::Shape),
        ("١", ParseError::Shape),
    ] {
        assert_eq!(Quantity::parse(text), Err(error), "{text}");
    }
    assert_eq!(
        ParseError::Suffix.to_string(),
        "unable to parse quantity's suffix"
    );
}

#[test]
fn values_round_away_from_zero_and_saturate() {
    for (text, value, milli) in [
        ("1", 1, 1_000),
        ("1m", 1, 1),
        ("1500m", 2, 1_500),
        ("1u", 1, 1),
        ("-1500m", -2, -1_500),
        ("1Gi", 1 << 30, (1 << 30) * 1_000),
        ("12E", i64::MAX, i64::MAX),
        ("-12E", i64::MIN, i64::MIN),
        ("1e99", i64::MAX, i64::MAX),
    ] {
        let quantity = Quantity::parse(text).unwrap();
        assert_eq!(quantity.value(), value, "{text}");
        assert_eq!(quantity.milli_value(), milli, "{text}");
    }
}

#[test]
fn sums_keep_the_family_of_the_first_amount_that_is_not_nothing() {
    let sum = |texts: &[&str]| {
        let mut sum = Quantity::ZERO;
        for text in texts {
            sum.add(&Quantity::parse(text).unwrap());
        }
        sum.to_string()
    };
    assert_eq!(sum(&["512Mi", "512Mi"]), "1Gi");
    assert_eq!(sum(&["1Gi", "1G"]), "2073741824");
    assert_eq!(sum(&["1", "1.500"]), "2500m");
    assert_eq!(sum(&["1e3", "1"]), "1001");
    assert_eq!(
        sum(&["1e99", "1e99"]),
        Quantity::from_nanos(i128::MAX, Format::DecimalExponent).to_string()
    );
    // Kubernetes caps what it reads with a binary suffix at 2^63-1.
    assert_eq!(sum(&["4Ei", "3Ei"]), "7Ei");
    assert_eq!(sum(&["4Ei"; 2]), "9223372036854775808");
    assert_eq!(sum(&["4Ei"; 4]), "18446744073709551616");
    assert_eq!(sum(&["4Ei"; 250]), "1152921504606846976k");
    assert_eq!(sum(&["-4Ei"; 2]), "-9223372036854775808");
    let mut rest = Quantity::parse("1").unwrap();
    rest.sub(&Quantity::parse("1500m").unwrap());
    assert_eq!(rest.to_string(), "-500m");
    assert!(rest < Quantity::ZERO);
}

#[test]
fn numbers_and_texts_are_read_from_json() {
    for (json, printed) in [
        ("2", "2"),
        ("0.5", "500m"),
        ("-3", "-3"),
        ("\" 1Gi \"", "1Gi"),
        ("18446744073709551615", "18446744073709551615"),
    ] {
        let quantity: Quantity = serde_json::from_str(json).unwrap();
        assert_eq!(quantity.to_string(), printed);
    }
    assert!(serde_json::from_str::<Quantity>("\"one\"").is_err());
    assert!(serde_json::from_str::<Quantity>("[]").is_err());
}

#[test]
fn many_digits_of_a_binary_amount_are_exact() {
    let text = "0.1234567890123456789012345678901234567890Ei";
    assert_eq!(
        Quantity::parse(text).unwrap().nanos(),
        142335986942043633765524428
    );
}

#[test]
fn long_texts_cost_no_more_than_their_length() {
    let digits = "9".repeat(1_000_000);
    assert_eq!(Quantity::parse(&digits).unwrap().value(), i64::MAX);
    assert_eq!(
        Quantity::parse(&format!("0.{digits}Ki")).unwrap().value(),
        1024
    );
    assert_eq!(
        Quantity::parse(&format!("1.{digits}"))
            .unwrap()
            .milli_value(),
        2000
    );
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_printed_reads_back_as_the_same_amount(nanos in any::<i64>(), family in 0..3) {
            let format = [Format::DecimalSi, Format::BinarySi, Format::DecimalExponent][family as usize];
            for nanos in [i128::from(nanos), i128::from(nanos) * NANO] {
                let quantity = Quantity::from_nanos(nanos, format);
                let read = Quantity::parse(&quantity.to_string()).unwrap();
                prop_assert_eq!(&read, &quantity);
                // A binary amount that no power of 1024 divides has no suffix, so that it reads
                // back as a decimal one, whose thousands have.
                let is_bare = quantity.to_string().ends_with(|one: char| one.is_ascii_digit());
                if !(format == Format::BinarySi && is_bare) {
                    prop_assert_eq!(read.to_string(), quantity.to_string());
                }
            }
        }

        #[test]
        fn a_sum_reads_back_as_itself(
            texts in prop::collection::vec("-?[1-9][0-9]{0,5}(m|k|Gi|Pi|Ei|E|e21|e30)", 1..6),
            times in 1_i64..2_000,
        ) {
            let mut sum = Quantity::ZERO;
            for text in &texts {
                let one = Quantity::parse(text).unwrap();
                let many = one.nanos().saturating_mul(times.into());
                sum.add(&Quantity::from_nanos(many, one.format()));
                sum.sub(&one);
                let read = Quantity::parse(&sum.to_string()).unwrap();
                prop_assert_eq!(&read, &sum);
            }
        }

        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in "[+-]?[0-9.]{0,40}[eEinumkKMGTP+-]{0,3}[0-9]{0,12}") {
            if let Ok(quantity) = Quantity::parse(&text) {
                let again = Quantity::parse(&quantity.canonical()).unwrap();
                prop_assert!(again == quantity || quantity.nanos().abs() >= i128::MAX / 2);
            }
        }

        #[test]
        fn a_text_that_is_left_as_it_is_is_what_its_amount_prints(
            text in "-?[0-9]{1,10}(0{3})?(n|u|m|k|M|G|T|Ki|Mi|Gi|Ti|e3|)",
        ) {
            let printed = Quantity::parse(&text).map(|quantity| quantity.canonical());
            let text = Quantity::canonical_text(&text).map(|text| text.into_owned());
            prop_assert_eq!(text, printed);
        }

        #[test]
        fn adding_and_subtracting_are_inverse(a in any::<i64>(), b in any::<i64>()) {
            let (a, b) = (Quantity::from_milli(a), Quantity::from_milli(b));
            let mut sum = a.clone();
            sum.add(&b);
            sum.sub(&b);
            prop_assert_eq!(sum, a);
        }
    }
}
