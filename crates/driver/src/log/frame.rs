//! A segment as a file: magic, version, then frames with sums, so that damage is told from a tail
//! that was never finished.

use super::header::Header;

/// The version of the format that this binary writes, and the only one that it reads.
pub const FORMAT: u16 = 2;

const MAGIC: &[u8; 8] = b"KATMAIDL";
const PREFIX: usize = MAGIC.len() + 2;
const FRAME_HEAD: usize = 12;
/// The longest frame that is taken.
const FRAME_MAX: usize = 256 << 20;

/// Why a segment cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It is something else.
    Foreign,
    /// A later version wrote it.
    Newer {
        /// Its version.
        version: u16,
    },
    /// An earlier version wrote it.
    Older {
        /// Its version.
        version: u16,
    },
    /// It is not what was written.
    Damaged {
        /// Where.
        offset: u64,
        /// How.
        what: String,
    },
    /// It ends before it has begun.
    Empty,
    /// It was made by settings that mean nothing here.
    Settings {
        /// What is missing or unknown.
        what: String,
    },
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Foreign => f.write_str("this is no decision log"),
            Problem::Newer { version } => write!(
                f,
                "the log has format {version}, and this version of katmai reads up to {FORMAT}"
            ),
            Problem::Older { version } => write!(
                f,
                "the log has format {version}, and this version of katmai reads format {FORMAT}"
            ),
            Problem::Damaged { offset, what } => {
                write!(f, "the log is damaged at byte {offset}: {what}")
            }
            Problem::Empty => f.write_str("the log ends before its first record"),
            Problem::Settings { what } => {
                write!(
                    f,
                    "the log was made by settings that are not understood: {what}"
                )
            }
        }
    }
}

impl std::error::Error for Problem {}

/// The end of a segment that was never finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// Where the last whole frame ends.
    pub offset: u64,
    /// How many bytes are left out.
    pub bytes: u64,
}

/// A segment, taken apart into frames.
#[derive(Clone, Debug)]
pub struct Segment<'a> {
    /// Who wrote it, and how.
    pub header: Header,
    /// Its frames, and where each begins.
    pub(super) frames: Vec<(u64, &'a [u8])>,
    /// What was cut off.
    pub torn: Option<TornTail>,
}

/// What a segment begins with.
pub fn opening(header: &Header) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&frame(header.json().to_string().as_bytes()));
    out
}

/// Bytes of whole records, framed.
pub fn frame(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(FRAME_HEAD + payload.len());
    let length = u32::try_from(payload.len())
        .unwrap_or(u32::MAX)
        .to_le_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&crc32fast::hash(&length).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
    out.extend_from_slice(payload);
    out
}

impl<'a> Segment<'a> {
    /// Takes a file apart. A tail that was never finished is left out and told.
    pub fn read(bytes: &'a [u8]) -> Result<Segment<'a>, Problem> {
        let magic = &bytes[..bytes.len().min(MAGIC.len())];
        if magic != &MAGIC[..magic.len()] {
            return Err(Problem::Foreign);
        }
        if bytes.len() < PREFIX {
            return Err(Problem::Empty);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version > FORMAT {
            return Err(Problem::Newer { version });
        }
        if version == 0 {
            return Err(damaged(8, "there is no format 0"));
        }
        if version < FORMAT {
            return Err(Problem::Older { version });
        }
        let mut frames = Vec::new();
        let mut at = PREFIX;
        let mut torn = None;
        while at < bytes.len() {
            let Some(payload) = next(bytes, at)? else {
                torn = Some(TornTail {
                    offset: at as u64,
                    bytes: (bytes.len() - at) as u64,
                });
                break;
            };
            frames.push(((at + FRAME_HEAD) as u64, payload));
            at += FRAME_HEAD + payload.len();
        }
        if frames.len() < 2 {
            return Err(Problem::Empty);
        }
        let (offset, first) = frames.remove(0);
        let header = Header::read(first).map_err(|what| damaged(offset, &what))?;
        Ok(Segment {
            header,
            frames,
            torn,
        })
    }
}

impl Segment<'_> {
    /// How many bytes lie before the first event, where the checkpoint has a frame of its own.
    pub fn bytes_before_events(&self) -> usize {
        let second = self.frames.get(1).map(|(offset, _)| *offset);
        second.and_then(|at| usize::try_from(at).ok()).unwrap_or(0)
    }
}

/// The frame at an offset; `None` for a tail that was never finished.
fn next(bytes: &[u8], at: usize) -> Result<Option<&[u8]>, Problem> {
    let rest = &bytes[at..];
    if rest.len() < FRAME_HEAD || rest.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let word = |at: usize| [rest[at], rest[at + 1], rest[at + 2], rest[at + 3]];
    if crc32fast::hash(&word(0)) != u32::from_le_bytes(word(4)) {
        return Err(damaged(at as u64, "the head of a frame has a wrong sum"));
    }
    let length = u32::from_le_bytes(word(0)) as usize;
    if length > FRAME_MAX {
        return Err(damaged(at as u64, "a frame is too long"));
    }
    let Some(payload) = rest[FRAME_HEAD..].get(..length) else {
        return Ok(None);
    };
    if crc32fast::hash(payload) == u32::from_le_bytes(word(8)) {
        return Ok(Some(payload));
    }
    // Only what was written last may be unfinished.
    match rest.len() == FRAME_HEAD + length {
        true => Ok(None),
        false => Err(damaged(at as u64, "a frame has a wrong sum")),
    }
}

fn damaged(offset: u64, what: &str) -> Problem {
    Problem::Damaged {
        offset,
        what: what.to_owned(),
    }
}
