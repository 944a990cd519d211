//! The wall clock, read here and nowhere else in this room.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use api::time::Time;

/// Now, in the one unit that rooms below the line know.
pub fn now() -> Time {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Time(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Waits for an instant; for ever without one.
pub(crate) async fn sleep_until(wake: Option<Time>) {
    match wake {
        Some(wake) => {
            let left = wake.micros().saturating_sub(now().micros()).max(0);
            tokio::time::sleep(Duration::from_micros(left.unsigned_abs())).await;
        }
        None => std::future::pending().await,
    }
}
