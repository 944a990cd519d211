//! Header blocks: names and values, squeezed with a dictionary that both sides know.
//!
//! One stream of zlib runs through all blocks of a direction, so that each must be read, in order.

use std::collections::BTreeMap;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::Broken;

/// Longest block, as it is and as it travels.
const BLOCK_BYTES_MAX: usize = 64 << 10;
/// Most headers of a block.
const HEADERS_MAX: u32 = 256;

/// Names in small letters, with their values.
pub(crate) type Headers = BTreeMap<String, String>;

/// Reads blocks.
pub(crate) struct Unpacker(Decompress);

impl Unpacker {
    pub(crate) fn new() -> Unpacker {
        Unpacker(Decompress::new(true))
    }

    pub(crate) fn unpack(&mut self, packed: &[u8]) -> Result<Headers, Broken> {
        let mut plain = Vec::with_capacity(1_024);
        let mut rest = packed;
        loop {
            let before = self.0.total_in();
            match self
                .0
                .decompress_vec(rest, &mut plain, FlushDecompress::Sync)
            {
                Ok(Status::StreamEnd) => return Err(Broken("the header blocks have ended")),
                Ok(_) => {}
                Err(error) if error.needs_dictionary().is_some() => {
                    self.0
                        .set_dictionary(&dictionary())
                        .map_err(|_| Broken("a header block wants another dictionary"))?;
                }
                Err(_) => return Err(Broken("a header block cannot be unpacked")),
            }
            let took = usize::try_from(self.0.total_in() - before).unwrap_or(rest.len());
            rest = rest.get(took..).unwrap_or_default();
            if plain.len() < plain.capacity() {
                // There was room for more, so there is no more.
                if rest.is_empty() {
                    break;
                }
                if took == 0 {
                    return Err(Broken("a header block cannot be unpacked"));
                }
            } else if plain.len() >= BLOCK_BYTES_MAX {
                return Err(Broken("a header block is too long"));
            } else {
                plain.reserve(plain.len());
            }
        }
        read(&plain)
    }
}

fn read(mut plain: &[u8]) -> Result<Headers, Broken> {
    let count = number(&mut plain)?;
    if count > HEADERS_MAX {
        return Err(Broken("a header block has too many headers"));
    }
    let mut headers = Headers::new();
    for _ in 0..count {
        let name = text(&mut plain)?;
        let value = text(&mut plain)?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn number(plain: &mut &[u8]) -> Result<u32, Broken> {
    let (head, rest) = plain
        .split_first_chunk()
        .ok_or(Broken("a header block is cut off"))?;
    *plain = rest;
    Ok(u32::from_be_bytes(*head))
}

fn text(plain: &mut &[u8]) -> Result<String, Broken> {
    let length = number(plain)? as usize;
    let (text, rest) = plain
        .split_at_checked(length)
        .ok_or(Broken("a header block is cut off"))?;
    *plain = rest;
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Writes blocks.
pub(crate) struct Packer(Compress);

impl Packer {
    pub(crate) fn new() -> Result<Packer, Broken> {
        let mut squeeze = Compress::new(Compression::fast(), true);
        squeeze
            .set_dictionary(&dictionary())
            .map_err(|_| Broken("the dictionary cannot be set"))?;
        Ok(Packer(squeeze))
    }

    pub(crate) fn pack(&mut self, headers: &Headers) -> Result<Vec<u8>, Broken> {
        let mut plain = length(headers.len()).to_vec();
        for (name, value) in headers {
            for text in [name, value] {
                plain.extend_from_slice(&length(text.len()));
                plain.extend_from_slice(text.as_bytes());
            }
        }
        // Room for what cannot be squeezed, and for the mark at the end that lets a reader see all.
        let mut packed = Vec::with_capacity(plain.len() + plain.len() / 8 + 64);
        let before = self.0.total_in();
        self.0
            .compress_vec(&plain, &mut packed, FlushCompress::Sync)
            .map_err(|_| Broken("a header block cannot be packed"))?;
        if self.0.total_in() - before != plain.len() as u64 || packed.len() == packed.capacity() {
            return Err(Broken("a header block cannot be packed"));
        }
        Ok(packed)
    }
}

fn length(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes()
}

/// The words of SPDY/3, section 2.6.10.1: each with its length before it, then a tail.
fn dictionary() -> Vec<u8> {
    let mut whole = Vec::with_capacity(1_423);
    for word in WORDS {
        whole.extend_from_slice(&length(word.len()));
        whole.extend_from_slice(word.as_bytes());
    }
    whole.extend_from_slice(TAIL.as_bytes());
    whole
}

const WORDS: &[&str] = &[
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];

const TAIL: &str = "\
    1001012012022052063003023033043053063074024054064074084094104114124134\
    14415416417502504505203 Non-Authoritative Information204 No Content30\
    1 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 No\
    t Found500 Internal Server Error501 Not Implemented503 Service Unavail\
    ableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue\
    , Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,im\
    age/gif,application/xml,application/xhtml+xml,text/plain,text/javascri\
    pt,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859\
    -1,utf-,*,enq=0.";

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Headers {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_dictionary_is_the_protocols() {
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in dictionary() {
            a = (a + u32::from(byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        assert_eq!((dictionary().len(), (b << 16) | a), (1_423, 0xe3c6_a7c2));
    }

    #[test]
    fn blocks_travel_in_order_with_what_came_before_them() {
        let (mut packer, mut unpacker) = (Packer::new().unwrap(), Unpacker::new());
        let long = "x".repeat(40_000);
        for block in [
            headers(&[("streamtype", "error"), ("port", "80"), ("requestid", "0")]),
            headers(&[("streamtype", "data"), ("port", "80"), ("requestid", "0")]),
            headers(&[]),
            headers(&[("long", &long)]),
            headers(&[("after", "it")]),
        ] {
            let packed = packer.pack(&block).unwrap();
            assert_eq!(unpacker.unpack(&packed).unwrap(), block);
        }
    }

    #[test]
    fn a_block_that_is_wrong_or_too_long_is_refused() {
        for bytes in [&b""[..], b"x", b"\x78\x9c", &[0xff; 100], &[0; 100]] {
            assert!(Unpacker::new().unpack(bytes).is_err(), "{bytes:?}");
        }
        let mut squeeze = Packer::new().unwrap();
        let bomb = headers(&[("bomb", &"0".repeat(200_000))]);
        let packed = squeeze.pack(&bomb).unwrap();
        assert!(packed.len() < 2_000);
        let refused = Unpacker::new().unpack(&packed).unwrap_err();
        assert_eq!(refused.to_string(), "a header block is too long");
    }
}
