//! The journal's record: what one write changed, as bytes that outlive this program.
//!
//! A journal is a snapshot (one record per object, [`Record::snapshot`]) and a log of records.
//! Both hold the same records, so loading is one loop. A record is
//!
//! ```text
//! byte 1   format version (1)
//! 8 bytes  global revision, little endian
//! varint   number of changes; for each:
//!   varint + bytes  resource, "group/plural" ("/pods" in the core group)
//!   varint + bytes  key, "namespace/name" or "name"
//!   byte            0 gone, 1 here; here is followed by
//!   8 bytes         the object's revision
//!   varint + bytes  the object's JSON
//! 4 bytes  CRC-32 (IEEE) of all bytes before
//! ```
//!
//! A reader stops at the first record that is torn or whose sum is wrong: everything before it is
//! whole, because a write is acknowledged only after its record was made durable.

/// The format that this program writes, and the newest that it reads.
pub const FORMAT: u8 = 1;

/// What one write changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The global revision after the write.
    pub revision: u64,
    /// The changed objects, each at most once.
    pub changes: Vec<Change>,
}

/// One changed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// `group/plural`.
    pub resource: Box<str>,
    /// `namespace/name` or `name`.
    pub key: Box<str>,
    /// Its new state; `None` where it is gone.
    pub state: Option<State>,
}

/// A stored object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Its resourceVersion.
    pub revision: u64,
    /// Its JSON.
    pub bytes: Vec<u8>,
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// They end too early or their sum is wrong: a crash cut the record short.
    Tail,
    /// A newer program wrote them.
    Newer(u8),
}

impl std::fmt::Display for Torn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Torn::Tail => f.write_str("the journal record is cut short or damaged"),
            Torn::Newer(version) => write!(
                f,
                "the journal was written by a newer katmai (format {version}, this one reads up to {FORMAT})"
            ),
        }
    }
}

impl std::error::Error for Torn {}

impl Record {
    /// A record of one object as it stands, for snapshots.
    pub fn snapshot(resource: &str, key: &str, state: State) -> Record {
        Record {
            revision: state.revision,
            changes: vec![Change {
                resource: resource.into(),
                key: key.into(),
                state: Some(state),
            }],
        }
    }

    /// The bytes of this record.
    pub fn encode(&self) -> Vec<u8> {
        let size: usize = self
            .changes
            .iter()
            .map(|change| {
                change.resource.len()
                    + change.key.len()
                    + change
                        .state
                        .as_ref()
                        .map_or(0, |state| state.bytes.len() + 18)
                    + 12
            })
            .sum();
        let mut out = Vec::with_capacity(size + 24);
        out.push(FORMAT);
        out.extend_from_slice(&self.revision.to_le_bytes());
        varint(&mut out, self.changes.len() as u64);
        for change in &self.changes {
            chunk(&mut out, change.resource.as_bytes());
            chunk(&mut out, change.key.as_bytes());
            match &change.state {
                None => out.push(0),
                Some(state) => {
                    out.push(1);
                    out.extend_from_slice(&state.revision.to_le_bytes());
                    chunk(&mut out, &state.bytes);
                }
            }
        }
        let sum = crc32fast::hash(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// The record that these bytes are.
    pub fn decode(bytes: &[u8]) -> Result<Record, Torn> {
        let version = *bytes.first().ok_or(Torn::Tail)?;
        if version > FORMAT {
            return Err(Torn::Newer(version));
        }
        let split = bytes.len().checked_sub(4).ok_or(Torn::Tail)?;
        let (body, sum) = bytes.split_at(split);
        if crc32fast::hash(body).to_le_bytes() != sum {
            return Err(Torn::Tail);
        }
        let mut changes = Vec::new();
        let revision = Record::each(bytes, &mut |change| {
            changes.push(Change {
                resource: change.resource.into(),
                key: change.key.into(),
                state: change.state.map(|(revision, bytes)| State {
                    revision,
                    bytes: bytes.to_vec(),
                }),
            });
        })?;
        Ok(Record { revision, changes })
    }

    /// Hands over the changes in a record's bytes without copying them, and gives the revision.
    /// The sum is not looked at: this is for bytes that were just encoded.
    pub fn each<'a>(bytes: &'a [u8], each: &mut dyn FnMut(ChangeRef<'a>)) -> Result<u64, Torn> {
        let split = bytes.len().checked_sub(4).ok_or(Torn::Tail)?;
        let rest = bytes.get(1..split).ok_or(Torn::Tail)?;
        let mut reader = Reader { rest };
        let revision = reader.fixed()?;
        let count = reader.varint()?;
        for _ in 0..count {
            let resource = reader.text()?;
            let key = reader.text()?;
            let state = match reader.byte()? {
                0 => None,
                _ => Some((reader.fixed()?, reader.chunk()?)),
            };
            each(ChangeRef {
                resource,
                key,
                state,
            });
        }
        Ok(revision)
    }
}

/// One changed object, within the bytes of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRef<'a> {
    /// `group/plural`.
    pub resource: &'a str,
    /// `namespace/name` or `name`.
    pub key: &'a str,
    /// Its revision and its JSON; `None` where it is gone.
    pub state: Option<(u64, &'a [u8])>,
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Torn> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(Torn::Tail)?;
        self.rest = rest;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, Torn> {
        Ok(self.take(1)?[0])
    }

    fn fixed(&mut self) -> Result<u64, Torn> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    fn varint(&mut self) -> Result<u64, Torn> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Torn::Tail)
    }

    fn chunk(&mut self) -> Result<&'a [u8], Torn> {
        let count = usize::try_from(self.varint()?).map_err(|_| Torn::Tail)?;
        self.take(count)
    }

    fn text(&mut self) -> Result<&'a str, Torn> {
        std::str::from_utf8(self.chunk()?).map_err(|_| Torn::Tail)
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            revision: 300,
            changes: vec![
                Change {
                    resource: "/pods".into(),
                    key: "a/b".into(),
                    state: Some(State {
                        revision: 300,
                        bytes: vec![b'x'; 300],
                    }),
                },
                Change {
                    resource: "batch/jobs".into(),
                    key: "a/c".into(),
                    state: None,
                },
            ],
        }
    }

    #[test]
    fn a_record_survives_its_bytes() {
        assert_eq!(Record::decode(&record().encode()), Ok(record()));
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_torn_or_damaged_record_is_refused_at_every_length() {
        let bytes = record().encode();
        for length in 0..bytes.len() {
            assert_eq!(
                Record::decode(&bytes[..length]),
                Err(Torn::Tail),
                "{length}"
            );
        }
        for at in 1..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert_eq!(Record::decode(&bytes), Err(Torn::Tail), "{at}");
        }
    }

    #[test]
    fn a_newer_format_is_named() {
        let mut bytes = record().encode();
        bytes[0] = 9;
        assert_eq!(Record::decode(&bytes), Err(Torn::Newer(9)));
    }
}
