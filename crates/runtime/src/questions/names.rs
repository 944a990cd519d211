//! Questions about names, to the DNS of pods. They go over connections: an answer of any length
//! comes whole, and a plane's pod network lets in nothing else.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use driver::Ask;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::network::{DNS_ADDRESS, LevelKind};
use crate::process::{PodDoor, ProcessNode};

/// Where DNS answers if nothing else is said.
const PORT: u16 = 53;
/// Who says which servers this process asks.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Who answers for the names of pods.
#[derive(Clone)]
pub(super) enum NameServers {
    /// The DNS of the pod network.
    Pods(PodDoor),
    /// Nobody: pods have the names of the host.
    None,
    /// These, one after the other.
    At(Servers),
}

/// Servers that know the same names.
#[derive(Clone)]
pub(super) struct Servers {
    /// Who they are; where there are none, those that this process has itself.
    given: Vec<SocketAddr>,
    /// Which of them answered last, and is asked first: one that is silent costs a question its time
    /// once, and not all that come after it.
    first: Arc<AtomicUsize>,
}

impl NameServers {
    /// These, or where none is named, whom the system asks.
    pub(super) fn at(given: Vec<SocketAddr>) -> NameServers {
        let first = Arc::default();
        NameServers::At(Servers { given, first })
    }

    /// Those of a node's pods.
    pub(super) fn of(node: &ProcessNode) -> NameServers {
        match node.level().kind {
            LevelKind::Pod => NameServers::Pods(node.pod_door()),
            LevelKind::Host => NameServers::None,
        }
    }
}

/// Asks for the addresses of a name: `NOERROR` and the addresses, or why there are none.
pub(super) async fn ask(servers: &NameServers, ask: &Ask) -> Result<Vec<u8>, String> {
    let name = format!("{}.", ask.call.target);
    let name = Name::from_ascii(&name).map_err(|error| format!("{name} is no name: {error}"))?;
    let answer = match servers {
        NameServers::None => Err("pods have no DNS of their own here".to_owned()),
        NameServers::Pods(door) => {
            let to = SocketAddr::from((DNS_ADDRESS, PORT));
            let socket = door
                .dial(to)
                .await
                .map_err(|error| unreachable(to, &error))?;
            look_up(socket, &name).await
        }
        NameServers::At(servers) => servers.ask(&name, ask.within_ms).await,
    }?;
    match answer.len() > ask.bytes_max {
        true => Err(super::too_long(ask)),
        false => Ok(answer.into_bytes()),
    }
}

impl Servers {
    /// The answer of the first server that has one. Each has its share of the time.
    async fn ask(&self, name: &Name, within_ms: i64) -> Result<String, String> {
        let servers = match self.given.is_empty() {
            true => own_servers().await?,
            false => self.given.clone(),
        };
        let count = servers.len().max(1);
        let all_ms = u64::try_from(within_ms).unwrap_or(0);
        let share = Duration::from_millis(all_ms / u64::try_from(count).unwrap_or(1));
        let begin = self.first.load(Ordering::Relaxed) % count;
        let mut why = "no name server is known".to_owned();
        for at in (begin..count).chain(0..begin) {
            let Some(server) = servers.get(at) else {
                continue;
            };
            let asked = async {
                let socket = TcpStream::connect(server).await;
                look_up(socket.map_err(|error| unreachable(*server, &error))?, name).await
            };
            match tokio::time::timeout(share, asked).await {
                Ok(Ok(answer)) => {
                    self.first.store(at, Ordering::Relaxed);
                    return Ok(answer);
                }
                Ok(Err(reason)) => why = reason,
                Err(_) => why = format!("name server {server} did not answer"),
            }
        }
        Err(why)
    }
}

fn unreachable(server: SocketAddr, error: &std::io::Error) -> String {
    format!("name server {server} cannot be reached: {error}")
}

/// The servers that this process would ask for a name.
async fn own_servers() -> Result<Vec<SocketAddr>, String> {
    let text = tokio::fs::read_to_string(RESOLV_CONF).await;
    let text = text.map_err(|error| format!("cannot read {RESOLV_CONF}: {error}"))?;
    Ok(servers_in(&text))
}

fn servers_in(resolv_conf: &str) -> Vec<SocketAddr> {
    let address = |line: &str| {
        let mut words = line.split_whitespace();
        let is_server = words.next() == Some("nameserver");
        let ip: IpAddr = words.next().filter(|_| is_server)?.parse().ok()?;
        Some(SocketAddr::new(ip, PORT))
    };
    let found: Vec<_> = resolv_conf.lines().filter_map(address).collect();
    match found.is_empty() {
        // What the C library does, too.
        true => vec![SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))],
        false => found,
    }
}

/// Asks for addresses of the fourth version of IP, and where there are none of the sixth.
async fn look_up(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    name: &Name,
) -> Result<String, String> {
    for (id, kind) in [(4, RecordType::A), (6, RecordType::AAAA)] {
        let answer = exchange(&mut socket, id, name, kind).await?;
        let addresses = answer
            .answers
            .iter()
            .filter_map(|record| match &record.data {
                RData::A(address) => Some(format!(" {address}")),
                RData::AAAA(address) => Some(format!(" {address}")),
                _ => None,
            });
        let addresses: String = addresses.collect();
        let word = word(answer.metadata.response_code);
        if word != "NOERROR" || !addresses.is_empty() {
            return Ok(format!("{word}{addresses}"));
        }
    }
    Ok("NOERROR".to_owned())
}

async fn exchange(
    socket: &mut (impl AsyncRead + AsyncWrite + Unpin),
    id: u16,
    name: &Name,
    kind: RecordType,
) -> Result<Message, String> {
    let mut question = Message::new(id, MessageType::Query, OpCode::Query);
    question.metadata.recursion_desired = true;
    question.add_query(Query::query(name.clone(), kind));
    let question = question.to_vec().map_err(|error| error.to_string())?;
    let length = u16::try_from(question.len()).map_err(|error| error.to_string())?;
    let mut sent = length.to_be_bytes().to_vec();
    sent.extend_from_slice(&question);
    let broke_off = |error: std::io::Error| format!("the name server broke off: {error}");
    socket.write_all(&sent).await.map_err(broke_off)?;
    let length = socket.read_u16().await.map_err(broke_off)?;
    let mut answer = vec![0; usize::from(length)];
    socket.read_exact(&mut answer).await.map_err(broke_off)?;
    let answer = Message::from_vec(&answer)
        .map_err(|error| format!("the name server's answer cannot be read: {error}"))?;
    match answer.metadata.id == id {
        true => Ok(answer),
        false => Err("the name server answered another question".to_owned()),
    }
}

/// A code in the words of those who look at DNS.
fn word(code: ResponseCode) -> String {
    let word = match code {
        ResponseCode::NoError => "NOERROR",
        ResponseCode::FormErr => "FORMERR",
        ResponseCode::ServFail => "SERVFAIL",
        ResponseCode::NXDomain => "NXDOMAIN",
        ResponseCode::NotImp => "NOTIMP",
        ResponseCode::Refused => "REFUSED",
        other => return format!("RCODE{}", u16::from(other)),
    };
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use api::call::Call;
    use driver::{Door, Topic};
    use hickory_proto::rr::Record;
    use hickory_proto::rr::rdata::{A, AAAA};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that knows some addresses of every name, answers with a code, and ends.
    async fn server(code: ResponseCode, known: Vec<RData>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("somebody comes");
            while let Ok(length) = socket.read_u16().await {
                let mut asked = vec![0; usize::from(length)];
                socket.read_exact(&mut asked).await.expect("it is whole");
                let asked = Message::from_vec(&asked).expect("it is a question");
                let query = asked.queries.first().expect("something is asked");
                let mut answer = Message::response(asked.metadata.id, asked.metadata.op_code);
                answer.metadata.response_code = code;
                for data in known
                    .iter()
                    .filter(|it| it.record_type() == query.query_type())
                {
                    let record = Record::from_rdata(query.name().clone(), 5, data.clone());
                    answer.add_answer(record);
                }
                let answer = answer.to_vec().expect("it can be written");
                let length = u16::try_from(answer.len()).expect("it is short");
                let whole = [&length.to_be_bytes()[..], &answer[..]].concat();
                socket.write_all(&whole).await.expect("it listens");
            }
        });
        address
    }

    async fn asked(servers: Vec<SocketAddr>) -> Result<String, String> {
        asked_of(&NameServers::at(servers)).await
    }

    async fn asked_of(servers: &NameServers) -> Result<String, String> {
        let question = Ask {
            topic: Topic("names train.ml.svc.cluster.local".to_owned()),
            door: Door::Names,
            call: Call {
                method: "GET",
                target: "train.ml.svc.cluster.local".to_owned(),
                content_type: "",
                body: Vec::new(),
            },
            within_ms: 2_000,
            bytes_max: 64,
        };
        let answer = ask(servers, &question).await;
        answer.map(|text| String::from_utf8(text).expect("it is text"))
    }

    #[tokio::test]
    async fn addresses_of_either_kind_and_the_words_of_dns_are_told() {
        let four = |last| RData::A(A(Ipv4Addr::new(10, 0, 0, last)));
        let six = || RData::AAAA(AAAA("fd00::1".parse().expect("an address")));
        let no_error = ResponseCode::NoError;
        for (code, known, expected) in [
            (
                no_error,
                vec![four(1), four(2)],
                "NOERROR 10.0.0.1 10.0.0.2",
            ),
            (no_error, vec![six()], "NOERROR fd00::1"),
            (no_error, vec![], "NOERROR"),
            (ResponseCode::NXDomain, vec![], "NXDOMAIN"),
            (ResponseCode::ServFail, vec![], "SERVFAIL"),
            (ResponseCode::YXDomain, vec![], "RCODE6"),
        ] {
            let server = server(code, known).await;
            assert_eq!(asked(vec![server]).await.as_deref(), Ok(expected));
        }
        let many = (1..9).map(four).collect();
        let why = asked(vec![server(no_error, many).await]).await;
        assert!(
            why.clone().is_err_and(|it| it.contains("longer than 64")),
            "{why:?}"
        );
    }

    #[tokio::test]
    async fn the_next_server_is_asked_where_one_is_silent_or_gone() {
        let silent = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let silent = (silent.local_addr().expect("an address"), silent);
        let gone = {
            let closed = TcpListener::bind("127.0.0.1:0").await;
            let closed = closed.expect("a port is free");
            closed.local_addr().expect("an address")
        };
        let known = server(ResponseCode::NXDomain, Vec::new()).await;
        let answer = asked(vec![gone, silent.0, known]).await;
        assert_eq!(answer.as_deref(), Ok("NXDOMAIN"));
        let why = asked(vec![gone]).await.expect_err("nobody is there");
        assert!(why.contains("cannot be reached"), "{why}");
    }

    #[tokio::test]
    async fn who_answered_last_is_asked_first() {
        let silent = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = silent.local_addr().expect("an address");
        let known = server(ResponseCode::NXDomain, Vec::new()).await;
        let servers = NameServers::at(vec![address, known]);
        assert_eq!(asked_of(&servers).await.as_deref(), Ok("NXDOMAIN"));
        silent.accept().await.expect("it was asked");
        // The one that knows answers once here: the silent one is asked after it, and not before.
        let why = asked_of(&servers).await.expect_err("nobody answers");
        assert_eq!(why, format!("name server {address} did not answer"));
    }

    #[test]
    fn servers_are_those_of_the_system() {
        let text = "# nameserver 9.9.9.9\nsearch a b\nnameserver 10.96.0.10\nnameserver fd00::a\n";
        let found: Vec<_> = servers_in(text).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.96.0.10:53", "[fd00::a]:53"]);
        assert_eq!(servers_in("")[0].to_string(), "127.0.0.1:53");
    }
}
