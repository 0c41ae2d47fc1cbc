//! Measures how long no client has been connected.
//!
//! With this an emulator can end itself after its parent process was killed: the operating system closes the connections of
//! a killed process, whatever else stays behind.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// Resolves when there has been no connection for `time`; any connection, however short, starts the wait again.
pub(crate) async fn wait(mut connections: watch::Receiver<usize>, time: Duration) {
    loop {
        let none = connections.wait_for(|&open| open == 0).await.is_ok();
        match timeout(time, connections.changed()).await {
            Ok(Ok(())) => {}
            Err(_elapsed) if none => return,
            // The counter of connections is gone.
            Err(_) | Ok(Err(_)) => return std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    const TIME: Duration = Duration::from_secs(20);

    /// Applies connection counts, each after some seconds, and returns after how many seconds the wait ended.
    async fn over_after(changes: &[(u64, usize)]) -> u64 {
        let connections = watch::Sender::new(0);
        let started = Instant::now();
        let waiting = wait(connections.subscribe(), TIME);
        let changing = async {
            for &(seconds, open) in changes {
                sleep(Duration::from_secs(seconds)).await;
                connections.send_replace(open);
            }
            std::future::pending().await
        };
        tokio::select! {
            () = waiting => started.elapsed().as_secs(),
            () = changing => unreachable!("it never ends"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_idle_timeout_begins_when_the_last_connection_closes() {
        assert_eq!(over_after(&[]).await, 20);
        assert_eq!(over_after(&[(5, 1), (100, 2), (100, 1), (5, 0)]).await, 230);
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_connection_restarts_the_idle_timeout() {
        assert_eq!(over_after(&[(15, 1), (0, 0), (15, 1), (0, 0)]).await, 50);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_emulator_never_becomes_idle() {
        let connections = watch::Sender::new(0);
        let waiting = wait(connections.subscribe(), TIME);
        drop(connections);
        assert!(timeout(TIME * 100, waiting).await.is_err());
    }
}
