//! The socket by which upstream's processes are told, for a while, how much to log.
//!
//! A file of its owner below a directory that the environment names, with HTTP on it:
//! `/setlevel?level=N&duration=60s` and `/getlevel`. Nobody comes by it from another machine or account.

use std::convert::Infallible;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{UnixListener, UnixStream};

use crate::listen::{ListenError, failed};

/// The socket's name, as upstream has it.
const NAME: &str = "klog-klog.sock";
/// How long a connection may take, in all.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to rest after the system refused a connection (too many open files).
const ACCEPT_REST: Duration = Duration::from_millis(50);
/// The longest that a level holds.
const DURATION_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Sets how much is logged, as upstream counts; `None` is what it was at the start.
pub type SetLevel = Box<dyn Fn(Option<i64>) -> Result<(), String> + Send + Sync>;

/// The socket, for as long as it is held.
#[derive(Debug)]
pub struct LevelSocket {
    path: PathBuf,
    task: tokio::task::JoinHandle<()>,
}

impl LevelSocket {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LevelSocket {
    fn drop(&mut self) {
        self.task.abort();
        // Somebody may have taken it away.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What is set.
struct Levels {
    /// What holds where nothing is set.
    usual: i64,
    set: SetLevel,
    now: Mutex<Now>,
}

/// The level that was set last, and the how many-th that was.
#[derive(Default)]
struct Now {
    level: Option<i64>,
    times: u64,
}

/// Listens below a directory, which is made if it is not there. `usual` is the level that holds.
///
/// # Errors
/// The socket cannot be made, or another process listens there.
pub async fn open_level_socket(
    directory: &Path,
    usual: i64,
    set: SetLevel,
) -> Result<LevelSocket, ListenError> {
    let path = directory.join(NAME);
    let action = format!("listen at {}", path.display());
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed(action.clone()))?;
    if is_left(&path).await {
        std::fs::remove_file(&path).map_err(failed(action.clone()))?;
    }
    let listener = UnixListener::bind(&path).map_err(failed(action.clone()))?;
    let own = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&path, own).map_err(failed(action))?;
    let levels = Arc::new(Levels {
        usual,
        set,
        now: Mutex::default(),
    });
    let task = tokio::spawn(accept(listener, levels));
    Ok(LevelSocket { path, task })
}

/// Whether a socket is there that nobody listens at: one that a process left behind.
async fn is_left(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    is_socket && UnixStream::connect(path).await.is_err()
}

async fn accept(listener: UnixListener, levels: Arc<Levels>) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                let levels = Arc::clone(&levels);
                tokio::spawn(async move {
                    let served = tokio::time::timeout(PATIENCE, serve(socket, levels)).await;
                    if let Ok(Err(error)) = served {
                        tracing::debug!("a connection ended: {error}");
                    }
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_REST).await;
            }
        }
    }
}

async fn serve(socket: UnixStream, levels: Arc<Levels>) -> Result<(), hyper::Error> {
    let service = service_fn(move |request: Request<Incoming>| {
        let (code, text) = levels.answer(request.uri().path(), request.uri().query());
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = code;
        std::future::ready(Ok::<_, Infallible>(response))
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(socket), service)
        .await
}

impl Levels {
    fn answer(self: &Arc<Self>, path: &str, query: Option<&str>) -> (StatusCode, String) {
        match path {
            "/getlevel" => (StatusCode::OK, format!("{}\n", self.level())),
            "/setlevel" => match self.change(query.unwrap_or_default()) {
                Ok(text) => (StatusCode::OK, text),
                Err(why) => (StatusCode::BAD_REQUEST, format!("{why}\n")),
            },
            _ => (
                StatusCode::NOT_FOUND,
                "there are /getlevel and /setlevel?level=N&duration=60s\n".to_owned(),
            ),
        }
    }

    fn level(&self) -> i64 {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.level.unwrap_or(self.usual)
    }

    fn change(self: &Arc<Self>, query: &str) -> Result<String, String> {
        let (level, duration) = wish(query)?;
        let times = {
            let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
            (self.set)(Some(level))?;
            now.level = Some(level);
            now.times += 1;
            now.times
        };
        tracing::info!("the log's level is {level} for {duration:?}");
        let levels = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(duration).await;
            levels.revert(times);
        });
        Ok(format!("the log's level is {level} for {duration:?}\n"))
    }

    /// What held before holds again, unless another level was set meanwhile.
    fn revert(&self, times: u64) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.times != times {
            return;
        }
        now.level = None;
        match (self.set)(None) {
            Ok(()) => tracing::info!("the log's level is {} again", self.usual),
            Err(why) => tracing::error!("the log's level stays: {why}"),
        }
    }
}

/// A level above 0, and for how long, which must be said.
fn wish(query: &str) -> Result<(i64, Duration), String> {
    let said = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let found = pairs.find(|(key, _)| *key == name);
        found
            .map(|(_, value)| value)
            .ok_or_else(|| format!("{name} is not said"))
    };
    let level = said("level")?;
    let level = level.parse().ok().filter(|level| *level > 0);
    let level = level.ok_or("level must be a whole number above 0")?;
    let duration = api::duration::Duration::parse(said("duration")?)?;
    let duration = u64::try_from(duration.milliseconds()).unwrap_or_default();
    let duration = Duration::from_millis(duration);
    if duration.is_zero() || duration > DURATION_MAX {
        return Err("duration must be above 0 and at most 24h".to_owned());
    }
    Ok((level, duration))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A socket below a directory of this name, and the level that was set last; -1 is the usual one.
    async fn opened(name: &str) -> (Result<LevelSocket, ListenError>, Arc<AtomicI64>, PathBuf) {
        let name = format!("katmai-level-{name}-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let level = Arc::new(AtomicI64::new(0));
        let seen = Arc::clone(&level);
        let set: SetLevel = Box::new(move |level| {
            seen.store(level.unwrap_or(-1), Ordering::SeqCst);
            Ok(())
        });
        (
            open_level_socket(&directory, 2, set).await,
            level,
            directory,
        )
    }

    async fn ask(socket: &LevelSocket, path: &str) -> String {
        let mut stream = UnixStream::connect(socket.path())
            .await
            .expect("it is there");
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        let (head, body) = answer.split_once("\r\n\r\n").expect("it is HTTP");
        let code = head.split(' ').nth(1).expect("it has a code");
        format!("{code} {}", body.trim_end())
    }

    #[tokio::test]
    async fn a_level_holds_for_as_long_as_was_said() {
        let (socket, level, directory) = opened("holds").await;
        let socket = socket.expect("it can be made");
        let own = std::fs::metadata(socket.path()).expect("it is there");
        assert_eq!(own.permissions().mode() & 0o777, 0o600);
        assert_eq!(ask(&socket, "/getlevel").await, "200 2");
        let told = ask(&socket, "/setlevel?level=5&duration=1h").await;
        assert_eq!(told, "200 the log's level is 5 for 3600s");
        assert_eq!(ask(&socket, "/getlevel").await, "200 5");
        assert_eq!(level.load(Ordering::SeqCst), 5);
        // The next one ends by itself; when the first would have ended nothing happens.
        ask(&socket, "/setlevel?duration=1ms&level=7").await;
        while level.load(Ordering::SeqCst) != -1 {
            tokio::task::yield_now().await;
        }
        assert_eq!(ask(&socket, "/getlevel").await, "200 2");
        drop(socket);
        let left = std::fs::read_dir(&directory).expect("it is there").count();
        assert_eq!(left, 0, "the socket goes with who listened");
        std::fs::remove_dir_all(directory).expect("it can go");
    }

    #[tokio::test]
    async fn an_end_counts_for_the_level_it_was_said_with_only() {
        let (socket, level, directory) = opened("ends").await;
        let socket = socket.expect("it can be made");
        let levels = Arc::new(Levels {
            usual: 0,
            set: Box::new(|_| Ok(())),
            now: Mutex::default(),
        });
        levels.change("level=3&duration=1h").expect("it is set");
        levels.change("level=4&duration=1h").expect("it is set");
        levels.revert(1);
        assert_eq!(levels.level(), 4);
        levels.revert(2);
        assert_eq!(levels.level(), 0);
        for (query, why) in [
            ("", "level is not said"),
            ("level=0&duration=1s", "level must be"),
            ("level=x&duration=1s", "level must be"),
            ("level=3", "duration is not said"),
            ("level=3&duration=0s", "duration must be"),
            ("level=3&duration=25h", "duration must be"),
        ] {
            let told = ask(&socket, &format!("/setlevel?{query}")).await;
            assert!(told.starts_with(&format!("400 {why}")), "{query}: {told}");
        }
        assert!(ask(&socket, "/else").await.starts_with("404"));
        assert_eq!(level.load(Ordering::SeqCst), 0, "nothing was set");
        drop(socket);
        std::fs::remove_dir_all(directory).expect("it can go");
    }

    #[tokio::test]
    async fn what_was_left_behind_is_taken_and_what_is_in_use_is_not() {
        let (socket, _, directory) = opened("left").await;
        let socket = socket.expect("it can be made");
        let error = opened("left").await.0.expect_err("it is in use");
        assert!(error.to_string().contains("klog-klog.sock"), "{error}");
        assert_eq!(ask(&socket, "/getlevel").await, "200 2", "it lives on");
        let path = socket.path().to_owned();
        drop(socket);
        // Who is killed takes nothing away.
        drop(std::os::unix::net::UnixListener::bind(&path).expect("its name is free"));
        assert!(path.exists());
        let again = opened("left").await.0.expect("it is nobody's");
        assert_eq!(ask(&again, "/getlevel").await, "200 2");
        drop(again);
        std::fs::remove_dir_all(directory).expect("it can go");
    }
}
