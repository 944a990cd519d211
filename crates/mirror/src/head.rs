//! The beginnings of texts as numbers, which stand beside what the texts lie behind.

/// The first eight bytes, the first of them as the highest: such numbers stand as their texts do, and only texts
/// that begin alike have one number.
pub(crate) fn head(text: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    for (to, from) in bytes.iter_mut().zip(text) {
        *to = *from;
    }
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::head;

    #[test]
    fn heads_stand_as_their_texts_do() {
        let texts = [
            "",
            "\0",
            "a",
            "a\0",
            "a\0b",
            "ab",
            "abcdefgh",
            "abcdefgha",
            "b",
            "é",
        ];
        assert!(texts.is_sorted());
        assert!(texts.map(|text| head(text.as_bytes())).is_sorted());
        assert!(head(b"ab") < head(b"abc"));
    }
}
