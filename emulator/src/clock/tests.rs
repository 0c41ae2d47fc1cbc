//! Clocks with simulated wall time.

use super::*;

const START: i64 = 1_700_000_000_000;

/// Returns a real clock that starts at [`START`], and the milliseconds by which the test shifts its wall clock.
pub(crate) fn put_by_hand() -> (Arc<AtomicI64>, RealClock) {
    let (put, begun) = (Arc::new(AtomicI64::new(0)), Instant::now());
    let shown = Arc::clone(&put);
    let wall = WallClock::new(move || {
        let at = START + shown.load(Ordering::Relaxed);
        UNIX_EPOCH + Duration::from_millis(at as u64) + begun.elapsed()
    });
    (put, RealClock::start(wall))
}

fn wall() -> (Arc<AtomicI64>, NamespaceClock) {
    let (put, real) = put_by_hand();
    (put, NamespaceClock::new(real))
}

/// Milliseconds since [`START`].
fn shown(clock: &NamespaceClock) -> i64 {
    clock.now().as_millis() - START
}

#[tokio::test(start_paused = true)]
async fn the_clock_follows_wall_time_forward_and_never_back() {
    let (put, clock) = wall();
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(shown(&clock), 2_000);
    // The machine slept for three hours.
    put.store(10_800_000, Ordering::Relaxed);
    assert_eq!((shown(&clock), clock.ahead()), (10_802_000, 0));
    assert_eq!(clock.real.unix_seconds(), (START + 10_802_000) / 1000);
    assert_eq!(clock.real.elapsed(), Duration::from_secs(2));
    put.store(0, Ordering::Relaxed);
    assert_eq!(shown(&clock), 10_802_000, "back");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(shown(&clock), 10_803_000, "it goes on meanwhile");
    put.store(10_800_000 + JUMP - 1, Ordering::Relaxed);
    assert_eq!(shown(&clock), 10_803_000, "no jump");
}

#[tokio::test(start_paused = true)]
async fn a_frozen_clock_ignores_jumps_of_wall_time() {
    let (put, clock) = wall();
    clock.freeze();
    put.store(60_000, Ordering::Relaxed);
    assert_eq!((shown(&clock), clock.ahead()), (0, -60_000));
    clock.resume();
    assert_eq!(shown(&clock), 0);
    put.store(70_000, Ordering::Relaxed);
    assert_eq!((shown(&clock), clock.ahead()), (10_000, -60_000));
}

#[tokio::test(start_paused = true)]
async fn wall_time_set_back_between_processes_leaves_no_offset() {
    let (put, clock) = wall();
    put.store(7_200_000, Ordering::Relaxed);
    let mut stored = clock.stored_state();
    for round in 1..=3 {
        let before = stored.now - START;
        // The wall clock shows START again.
        let (_, clock) = wall();
        assert_eq!(clock.restore(stored), before);
        assert_eq!((shown(&clock), clock.ahead()), (before, before));
        tokio::time::advance(Duration::from_secs(1)).await;
        let later = clock.stored_state();
        assert_eq!((later.offset, later.now - START), (0, before + 1_000));
        // The wall clock is right again.
        let (put, clock) = wall();
        let right = 7_200_000 + round * 60_000;
        put.store(right, Ordering::Relaxed);
        assert_eq!(clock.restore(later), 0);
        assert_eq!((shown(&clock), clock.ahead()), (right, 0));
        stored = clock.stored_state();
        assert_eq!((stored.offset, stored.now - START), (0, right));
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_s_offset_is_kept_apart_from_wall_time_that_was_set_back() {
    let (put, clock) = wall();
    put.store(7_200_000, Ordering::Relaxed);
    clock.freeze();
    let advance = clock.begin_advance(Duration::from_secs(5));
    advance.step_to(advance.target);
    drop(advance);
    let stored = clock.stored_state();
    let (put, clock) = wall();
    assert_eq!(clock.restore(stored), 7_200_000);
    clock.resume();
    assert_eq!((shown(&clock), clock.ahead()), (7_205_000, 7_205_000));
    assert_eq!(clock.stored_state().offset, 5_000);
    put.store(7_200_000, Ordering::Relaxed);
    assert_eq!(
        (shown(&clock), clock.ahead()),
        (7_205_000, 5_000),
        "right again"
    );
    put.store(7_300_000, Ordering::Relaxed);
    assert_eq!((shown(&clock), clock.ahead()), (7_305_000, 5_000));
}

#[tokio::test(start_paused = true)]
async fn a_distant_deadline_is_rechecked_periodically() {
    let (put, clock) = wall();
    let real = &clock.real;
    let (near, far) = (START / 1000 + 3, START / 1000 + 7200);
    assert_eq!(real.check_at(near), Duration::from_secs(3));
    assert_eq!(real.check_at(far), RECHECK);
    tokio::time::advance(RECHECK).await;
    assert_eq!(real.check_at(far), 2 * RECHECK);
    put.store(7_200_000, Ordering::Relaxed);
    assert_eq!(real.check_at(far), RECHECK, "it has come");
}

#[tokio::test(start_paused = true)]
async fn an_advance_of_the_clock_ends_exactly_at_its_target() {
    let (_, clock) = wall();
    clock.freeze();
    let start = clock.now();
    let advance = clock.begin_advance(Duration::from_secs(60));
    advance.step_to(start + Duration::from_secs(20));
    assert_eq!(clock.now(), start + Duration::from_secs(20));
    advance.step_to(start + Duration::from_secs(10));
    assert_eq!(
        clock.now(),
        start + Duration::from_secs(20),
        "time ran back"
    );
    advance.step_to(advance.target);
    drop(advance);
    assert_eq!(clock.now(), start + Duration::from_secs(60));
    assert!(clock.read().frozen);
    clock.resume();
    assert_eq!(clock.now(), start + Duration::from_secs(60));
    assert!(!clock.read().frozen);
}

#[tokio::test(start_paused = true)]
async fn an_advance_of_a_frozen_clock_is_stored_as_far_as_it_came() {
    let (_, clock) = wall();
    clock.freeze();
    let advance = clock.begin_advance(Duration::from_secs(60));
    advance.step_to(clock.now() + Duration::from_secs(20));
    let stored = clock.stored_state();
    assert_eq!((stored.offset, stored.now - START), (20_000, 20_000));
    drop(advance);
    assert_eq!(clock.stored_state(), stored);
}

#[tokio::test(start_paused = true)]
async fn an_advance_moves_a_running_clock_ahead_by_its_steps() {
    let (put, clock) = wall();
    let advance = clock.begin_advance(Duration::from_secs(61));
    assert_eq!(clock.until(advance.target), None);
    advance.step_to(advance.target);
    tokio::time::advance(Duration::from_secs(2)).await;
    put.store(3_600_000, Ordering::Relaxed);
    drop(advance);
    assert_eq!((shown(&clock), clock.ahead()), (3_663_000, 61_000));
    let advance = clock.begin_advance(Duration::from_secs(100));
    advance.step_to(clock.now() + Duration::from_secs(9));
    drop(advance);
    assert_eq!(clock.ahead(), 70_000, "as far as it came");
}

#[test]
fn an_instant_outside_the_calendar_is_shown_as_the_nearest_date() {
    for (millis, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (i64::MAX, "9999-12-30T22:00:00.999999999Z"),
        (last().as_millis() + 1, "9999-12-30T22:00:00.999999999Z"),
        (last().as_millis(), "9999-12-30T22:00:00.999999999Z"),
        (i64::MIN, "-009999-01-02T01:59:59Z"),
    ] {
        assert_eq!(from_millis(millis).to_string(), text);
    }
}
