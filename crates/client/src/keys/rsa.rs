//! RSA keys of 2,048 bits in the form of PKCS #1 (RFC 8017, A.1.2), as Volcano draws them.

use api::intent::DrawnKey;
use num_bigint_dig::{BigUint, ModInverse, RandPrime};
use rand_core::{CryptoRng, RngCore};
use ring::signature::RsaKeyPair;

use super::KeyError;
use super::form::{Blob, line, pem};

const NAME: &str = "ssh-rsa";
const BITS: usize = 2_048;
const EXPONENT: u32 = 65_537;
/// The primes differ in one of their first bits (FIPS 186-5, A.1.3).
const DISTANCE_BITS: usize = BITS / 2 - 100;

/// Marks of DER (X.690).
const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;

/// Draws a pair. It is read once more by whoever would use it, who checks that all of it fits.
pub(super) fn draw(random: &mut (impl RngCore + CryptoRng)) -> Result<DrawnKey, KeyError> {
    let exponent = BigUint::from(EXPONENT);
    let (private, modulus) = loop {
        let [p, q] = [0, 1].map(|_| random.gen_prime(BITS / 2));
        if let Some(found) = pair(&exponent, p, q) {
            break found;
        }
    };
    RsaKeyPair::from_der(&private).map_err(KeyError::Rejected)?;
    let mut public = Blob::default();
    public.text(NAME);
    public.bytes(&whole_number(&exponent));
    public.bytes(&whole_number(&modulus));
    Ok(DrawnKey {
        private: pem("RSA PRIVATE KEY", &private),
        public: line(NAME, &public),
        host: None,
    })
}

/// The private key of two primes, and its modulus; `None` if they do not go together (RFC 8017, 3.2).
fn pair(exponent: &BigUint, one: BigUint, other: BigUint) -> Option<(Vec<u8>, BigUint)> {
    let (p, q) = if one > other {
        (one, other)
    } else {
        (other, one)
    };
    let modulus = &p * &q;
    if (&p - &q).bits() <= DISTANCE_BITS || modulus.bits() != BITS {
        return None;
    }
    let before = |prime: &BigUint| prime - 1_u32;
    let inverse = |number: &BigUint, modulus: &BigUint| number.mod_inverse(modulus)?.to_biguint();
    let secret = inverse(exponent, &(before(&p) * before(&q)))?;
    let numbers = [
        BigUint::default(),
        modulus.clone(),
        exponent.clone(),
        secret.clone(),
        p.clone(),
        q.clone(),
        &secret % before(&p),
        &secret % before(&q),
        inverse(&q, &p)?,
    ];
    let fields = numbers
        .iter()
        .flat_map(|it| tagged(INTEGER, &whole_number(it)));
    let private = tagged(SEQUENCE, &fields.collect::<Vec<u8>>());
    Some((private, modulus))
}

/// A number, its highest byte first; a zero keeps it from being taken for a negative one.
fn whole_number(number: &BigUint) -> Vec<u8> {
    let mut bytes = number.to_bytes_be();
    if bytes.first().is_none_or(|first| first & 0x80 != 0) {
        bytes.insert(0, 0);
    }
    bytes
}

/// A value with its mark and its length, which takes one byte up to 127, and else tells how many
/// bytes it takes itself.
fn tagged(mark: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len().to_be_bytes();
    let start = length.iter().take_while(|byte| **byte == 0).count();
    let length = &length[start.min(length.len() - 1)..];
    let mut all = vec![mark];
    if value.len() > 127 {
        all.push(0x80 | u8::try_from(length.len()).unwrap_or(u8::MAX));
    }
    all.extend(length);
    all.extend(value);
    all
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use rand_core::OsRng;

    use super::super::COMMENT;
    use super::*;

    #[test]
    fn a_drawn_pair_belongs_together() {
        let drawn = draw(&mut OsRng).unwrap();
        let lines: Vec<&str> = drawn.private.lines().collect();
        let (first, last) = (lines[0], lines[lines.len() - 1]);
        assert_eq!(first, "-----BEGIN RSA PRIVATE KEY-----");
        assert_eq!(last, "-----END RSA PRIVATE KEY-----");
        let body = STANDARD.decode(lines[1..lines.len() - 1].concat()).unwrap();
        let pair = RsaKeyPair::from_der(&body).unwrap();
        assert_eq!(pair.public().modulus_len(), BITS / 8);
        // Its own form of the public key: a sequence of the modulus and the exponent.
        let modulus = &pair.public().as_ref()[8..][..BITS / 8 + 1];
        let words: Vec<&str> = drawn.public.split_whitespace().collect();
        let blob = STANDARD.decode(words[1]).unwrap();
        let head = b"\0\0\0\x07ssh-rsa\0\0\0\x03\x01\0\x01\0\0\x01\x01";
        assert_eq!(blob, [&head[..], modulus].concat());
        assert_eq!((words[0], words[2]), (NAME, COMMENT));
    }

    #[test]
    fn primes_that_do_not_go_together_are_drawn_again() {
        let exponent = BigUint::from(EXPONENT);
        let prime = OsRng.gen_prime(BITS / 2);
        assert!(pair(&exponent, prime.clone(), prime).is_none());
        assert!(pair(&exponent, BigUint::from(11_u32), BigUint::from(13_u32)).is_none());
    }
}
