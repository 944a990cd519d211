//! The cluster DNS: names of Services and of pods behind headless ones, by the schema of
//! Kubernetes' DNS specification. It knows no other domain.

use std::io;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, CNAME, SRV};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::Instant;

use super::CLUSTER_DOMAIN;
use super::table::{HostRecord, ServiceRow, Table};

/// Life of an answer: short, since pods come and go.
const TTL_SECONDS: u32 = 5;
/// How long a question for a peer that has no address yet is held before it is refused. Peers of a
/// gang get their addresses within this time, and resolvers ask again only after five seconds.
const HOLD: Duration = Duration::from_millis(1_500);
/// Questions held at one time; further ones are answered at once.
const HELD_MAX: usize = 512;
/// Connections served at one time.
const STREAMS_MAX: usize = 64;
/// How long a connection may be silent.
const STREAM_IDLE: Duration = Duration::from_secs(10);
/// Longest answer by datagram where the question says nothing else.
const DATAGRAM_BYTES: u16 = 512;

/// Longest answer by datagram, whatever the question says.
const DATAGRAM_BYTES_MAX: u16 = 4_096;

type Seen = watch::Receiver<Rc<Table>>;

/// Answers datagrams for ever.
pub(crate) async fn serve_datagrams(socket: UdpSocket, seen: Seen) {
    let socket = Rc::new(socket);
    let held = Rc::new(());
    let mut buffer = vec![0; 4_096];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            // An earlier answer could not be delivered; the socket stays good.
            tokio::task::yield_now().await;
            continue;
        };
        let question = buffer[..length].to_vec();
        let (socket, seen, token) = (socket.clone(), seen.clone(), held.clone());
        let patience = patience(Rc::strong_count(&held));
        tokio::task::spawn_local(async move {
            if let Some(answer) = answer_patiently(&question, seen, patience, Way::Datagram).await {
                // Whoever is gone asks no more.
                let _gone = socket.send_to(&answer, from).await;
            }
            drop(token);
        });
    }
}

fn patience(held: usize) -> Duration {
    if held > HELD_MAX {
        Duration::ZERO
    } else {
        HOLD
    }
}

/// Answers connections for ever. Each may ask several times; a silent one is left.
pub(crate) async fn serve_streams(listener: TcpListener, seen: Seen) {
    let places = Rc::new(tokio::sync::Semaphore::new(STREAMS_MAX));
    while let Ok((stream, _)) = listener.accept().await {
        let Ok(place) = places.clone().try_acquire_owned_local() else {
            continue;
        };
        let seen = seen.clone();
        tokio::task::spawn_local(async move {
            // A broken connection ends; the asker opens another.
            let _ended = serve_stream(stream, seen).await;
            drop(place);
        });
    }
}

/// A place among those that a semaphore on this thread gives out.
trait LocalPlaces {
    fn try_acquire_owned_local(self) -> Result<LocalPlace, ()>;
}

struct LocalPlace(Rc<tokio::sync::Semaphore>);

impl LocalPlaces for Rc<tokio::sync::Semaphore> {
    fn try_acquire_owned_local(self) -> Result<LocalPlace, ()> {
        self.try_acquire().map_err(drop)?.forget();
        Ok(LocalPlace(self))
    }
}

impl Drop for LocalPlace {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

async fn serve_stream(mut stream: TcpStream, seen: Seen) -> io::Result<()> {
    loop {
        let question = tokio::time::timeout(STREAM_IDLE, read_question(&mut stream)).await??;
        let answer = answer_patiently(&question, seen.clone(), HOLD, Way::Stream).await;
        let Some(answer) = answer else {
            return Ok(());
        };
        let length = u16::try_from(answer.len()).map_err(io::Error::other)?;
        let mut whole = length.to_be_bytes().to_vec();
        whole.extend_from_slice(&answer);
        tokio::time::timeout(STREAM_IDLE, stream.write_all(&whole)).await??;
    }
}

async fn read_question(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut question = vec![0; usize::from(length)];
    stream.read_exact(&mut question).await?;
    Ok(question)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Datagram,
    Stream,
}

async fn answer_patiently(
    question: &[u8],
    mut seen: Seen,
    patience: Duration,
    way: Way,
) -> Option<Vec<u8>> {
    let until = Instant::now() + patience;
    loop {
        let table = seen.borrow_and_update().clone();
        let found = answer(question, &table, way)?;
        if !found.may_come {
            return Some(found.bytes);
        }
        let Ok(Ok(())) = tokio::time::timeout_at(until, seen.changed()).await else {
            return Some(found.bytes);
        };
    }
}

struct Answer {
    bytes: Vec<u8>,
    /// The name is one that a pod may get soon.
    may_come: bool,
}

/// The answer to one message; `None` where it deserves none.
fn answer(question: &[u8], table: &Table, way: Way) -> Option<Answer> {
    let asked = Message::from_vec(question).ok()?;
    if asked.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut message = Message::response(asked.metadata.id, asked.metadata.op_code);
    message.metadata.recursion_desired = asked.metadata.recursion_desired;
    message.metadata.recursion_available = true;
    message.metadata.authoritative = true;
    let mut may_come = false;
    match asked.queries.first() {
        Some(query) if asked.metadata.op_code == OpCode::Query => {
            message.add_query(query.clone());
            let found = look_up(&query.name().to_ascii(), query.query_type(), table);
            match found {
                Found::Records(mut records) => {
                    let turn = usize::from(asked.metadata.id) % records.len().max(1);
                    records.rotate_left(turn);
                    for data in records {
                        let record = Record::from_rdata(query.name().clone(), TTL_SECONDS, data);
                        message.add_answer(record);
                    }
                }
                Found::Nothing { soon } => {
                    may_come = soon;
                    message.metadata.response_code = ResponseCode::NXDomain;
                }
            }
        }
        _ => message.metadata.response_code = ResponseCode::NotImp,
    }
    let mut bytes = message.to_vec().ok()?;
    let room = match (way, &asked.edns) {
        (Way::Stream, _) => u16::MAX,
        (Way::Datagram, None) => DATAGRAM_BYTES,
        (Way::Datagram, Some(edns)) => {
            let wanted = edns.max_payload();
            wanted.clamp(DATAGRAM_BYTES, DATAGRAM_BYTES_MAX)
        }
    };
    if bytes.len() > usize::from(room) {
        bytes = message.truncate().to_vec().ok()?;
    }
    Some(Answer { bytes, may_come })
}

enum Found {
    /// The name exists; these are its records of the wanted type, perhaps none.
    Records(Vec<RData>),
    /// No such name; `soon`: it may come with a pod that is about to get its address.
    Nothing { soon: bool },
}

const NOTHING: Found = Found::Nothing { soon: false };

fn look_up(name: &str, kind: RecordType, table: &Table) -> Found {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let Some(inside) = name
        .strip_suffix(CLUSTER_DOMAIN)
        .and_then(|rest| rest.strip_suffix('.'))
    else {
        return NOTHING;
    };
    let labels: Vec<&str> = inside.rsplit('.').collect();
    match labels.as_slice() {
        ["svc" | "pod"] => Found::Records(Vec::new()),
        ["svc", namespace] => {
            let known = table.rows.keys().any(|(own, _)| own == namespace);
            if known {
                Found::Records(Vec::new())
            } else {
                NOTHING
            }
        }
        ["pod", _, dashed] => match dashed.replace('-', ".").parse::<Ipv4Addr>() {
            Ok(address) => Found::Records(addresses(kind, &[address])),
            Err(_) => NOTHING,
        },
        ["svc", namespace, service, rest @ ..] => {
            let key = ((*namespace).to_owned(), (*service).to_owned());
            match table.rows.get(&key) {
                Some(row) => of_service(row, rest, kind, &key),
                None => NOTHING,
            }
        }
        _ => NOTHING,
    }
}

fn of_service(row: &ServiceRow, rest: &[&str], kind: RecordType, key: &(String, String)) -> Found {
    if let Some(external) = &row.external_name {
        let target = Name::from_ascii(format!("{}.", external.trim_end_matches('.')));
        return match (rest, target) {
            ([], Ok(target)) => Found::Records(vec![RData::CNAME(CNAME(target))]),
            _ => NOTHING,
        };
    }
    match (row.cluster_ip, rest) {
        (Some(address), []) => Found::Records(addresses(kind, &[address])),
        (None, []) => {
            let all: Vec<_> = row.records.iter().map(|record| record.address).collect();
            if all.is_empty() {
                return Found::Nothing { soon: true };
            }
            Found::Records(addresses(kind, &all))
        }
        (_, [protocol, port]) if protocol.starts_with('_') => {
            services(row, &format!("{protocol} {port}"), kind, key)
        }
        (None, [hostname]) => {
            let named = |record: &&HostRecord| record.hostname == *hostname;
            let mut all: Vec<_> = row
                .records
                .iter()
                .filter(named)
                .map(|record| record.address)
                .collect();
            if all.is_empty() {
                // Pods without a host name of their own answer to their dashed address.
                let plain = hostname.replace('-', ".").parse::<Ipv4Addr>().ok();
                all.extend(
                    plain.filter(|wanted| {
                        row.records.iter().any(|record| record.address == *wanted)
                    }),
                );
            }
            if all.is_empty() {
                return Found::Nothing { soon: true };
            }
            Found::Records(addresses(kind, &all))
        }
        _ => NOTHING,
    }
}

fn addresses(kind: RecordType, all: &[Ipv4Addr]) -> Vec<RData> {
    match kind {
        RecordType::A | RecordType::ANY => all.iter().map(|one| RData::A(A(*one))).collect(),
        _ => Vec::new(),
    }
}

/// SRV records of `_port._protocol`.
fn services(row: &ServiceRow, wanted: &str, kind: RecordType, key: &(String, String)) -> Found {
    let Some(port) = row
        .ports
        .iter()
        .find(|port| format!("{} _{}", port.protocol.label(), port.name) == wanted)
    else {
        return NOTHING;
    };
    if !matches!(kind, RecordType::SRV | RecordType::ANY) {
        return Found::Records(Vec::new());
    }
    let service = format!("{}.{}.svc.{CLUSTER_DOMAIN}.", key.1, key.0);
    let targets: Vec<(String, u16)> = if row.cluster_ip.is_some() {
        vec![(service, port.port)]
    } else {
        let each = row.records.iter().map(|record| {
            let label = if record.hostname.is_empty() {
                record.address.to_string().replace('.', "-")
            } else {
                record.hostname.clone()
            };
            let backend = port.backends.iter().find(|(own, _)| *own == record.address);
            let number = backend.map_or(port.port, |(_, number)| *number);
            (format!("{label}.{service}"), number)
        });
        each.collect()
    };
    let records = targets.into_iter().filter_map(|(target, number)| {
        let target = Name::from_ascii(target).ok()?;
        Some(RData::SRV(SRV::new(0, 100, number, target)))
    });
    Found::Records(records.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::table::{PortRow, Protocol, RowChange};

    fn table() -> Table {
        let pod = |hostname: &str, last| HostRecord {
            hostname: hostname.to_owned(),
            address: Ipv4Addr::new(10, 244, 0, last),
        };
        let headless = ServiceRow {
            records: vec![pod("training-worker-0", 3), pod("", 4)],
            ports: vec![PortRow {
                name: "web".to_owned(),
                protocol: Protocol::Tcp,
                port: 80,
                backends: vec![(Ipv4Addr::new(10, 244, 0, 3), 8080)],
            }],
            ..ServiceRow::default()
        };
        let usual = ServiceRow {
            cluster_ip: Some(Ipv4Addr::new(10, 96, 1, 1)),
            ..ServiceRow::default()
        };
        let external = ServiceRow {
            external_name: Some("db.example.org".to_owned()),
            ..ServiceRow::default()
        };
        let mut table = Table::default();
        let rows = [("training", headless), ("web", usual), ("db", external)];
        table.apply(
            rows.into_iter()
                .map(|(name, row)| RowChange {
                    key: ("default".to_owned(), name.to_owned()),
                    row: Some(row),
                })
                .collect(),
        );
        table
    }

    fn ask(name: &str, kind: RecordType) -> String {
        let name = Name::from_ascii(name).unwrap();
        let mut asked = Message::new(0, MessageType::Query, OpCode::Query);
        asked.add_query(hickory_proto::op::Query::query(name, kind));
        let found = answer(&asked.to_vec().unwrap(), &table(), Way::Datagram).unwrap();
        let message = Message::from_vec(&found.bytes).unwrap();
        let records: Vec<_> = message
            .answers
            .iter()
            .map(|record| record.data.to_string())
            .collect();
        format!(
            "{}{} {}",
            message.metadata.response_code,
            if found.may_come { " soon" } else { "" },
            records.join(" ")
        )
    }

    #[test]
    fn services_and_pods_behind_them_have_names() {
        for (name, kind, expected) in [
            (
                "training-worker-0.training.default.svc.cluster.local.",
                RecordType::A,
                "No Error 10.244.0.3",
            ),
            (
                "Training-Worker-0.training.default.svc.cluster.LOCAL.",
                RecordType::A,
                "No Error 10.244.0.3",
            ),
            (
                "training-worker-0.training.default.svc.cluster.local.",
                RecordType::AAAA,
                "No Error ",
            ),
            (
                "training-worker-1.training.default.svc.cluster.local.",
                RecordType::A,
                "Non-Existent Domain soon ",
            ),
            (
                "10-244-0-4.training.default.svc.cluster.local.",
                RecordType::A,
                "No Error 10.244.0.4",
            ),
            (
                "training.default.svc.cluster.local.",
                RecordType::A,
                "No Error 10.244.0.3 10.244.0.4",
            ),
            (
                "web.default.svc.cluster.local.",
                RecordType::A,
                "No Error 10.96.1.1",
            ),
            (
                "x.web.default.svc.cluster.local.",
                RecordType::A,
                "Non-Existent Domain ",
            ),
            (
                "db.default.svc.cluster.local.",
                RecordType::A,
                "No Error db.example.org.",
            ),
            (
                "10-244-0-9.default.pod.cluster.local.",
                RecordType::A,
                "No Error 10.244.0.9",
            ),
            (
                "none.default.svc.cluster.local.",
                RecordType::A,
                "Non-Existent Domain ",
            ),
            ("example.org.", RecordType::A, "Non-Existent Domain "),
            (
                "_web._tcp.training.default.svc.cluster.local.",
                RecordType::SRV,
                "No Error 0 100 8080 training-worker-0.training.default.svc.cluster.local. 0 100 80 10-244-0-4.training.default.svc.cluster.local.",
            ),
        ] {
            assert_eq!(ask(name, kind), expected, "{name}");
        }
    }

    #[test]
    fn nonsense_gets_no_answer_and_no_panic() {
        for length in 0..64_usize {
            let noise: Vec<u8> = (0..length).map(|at| (at * 37 + length) as u8).collect();
            // Whatever comes back, it came back.
            let _any = answer(&noise, &table(), Way::Stream);
        }
        assert!(answer(b"", &table(), Way::Datagram).is_none());
    }

    #[test]
    fn long_answers_by_datagram_say_that_there_is_more() {
        let mut table = Table::default();
        let records = (0..200).map(|last| HostRecord {
            hostname: format!("h{last}"),
            address: Ipv4Addr::new(10, 244, 1, last),
        });
        table.apply(vec![RowChange {
            key: ("default".to_owned(), "big".to_owned()),
            row: Some(ServiceRow {
                records: records.collect(),
                ..ServiceRow::default()
            }),
        }]);
        let name = Name::from_ascii("big.default.svc.cluster.local.").unwrap();
        let mut asked = Message::new(0, MessageType::Query, OpCode::Query);
        asked.add_query(hickory_proto::op::Query::query(name, RecordType::A));
        let asked = asked.to_vec().unwrap();
        let cut = answer(&asked, &table, Way::Datagram).unwrap().bytes;
        assert!(cut.len() <= 512 && Message::from_vec(&cut).unwrap().metadata.truncation);
        let whole = answer(&asked, &table, Way::Stream).unwrap().bytes;
        assert_eq!(Message::from_vec(&whole).unwrap().answers.len(), 200);
    }
}
