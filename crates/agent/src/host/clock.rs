//! The clock machines are given: it never goes back, and it counts suspend.

use bellwether_proto::Time;
use rustix::time::{ClockId, clock_gettime};

/// Microseconds since the machine was switched on, sleep included. Those of the standard library and of the runtime
/// stop while a laptop is closed or a virtual machine is paused, and leadership would go on.
pub(crate) fn now() -> Time {
    let at = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(at.tv_sec).unwrap_or_default();
    let micros = u64::try_from(at.tv_nsec).unwrap_or_default() / 1_000;
    Time::from_micros(seconds.saturating_mul(1_000_000).saturating_add(micros))
}

/// Milliseconds since 1970, for people. Nothing is ever compared with it.
pub(crate) fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_and_never_back() {
        let mut last = now();
        for _ in 0..10_000 {
            let next = now();
            assert!(next >= last);
            last = next;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(now().since(last).as_micros() >= 2_000);
    }
}
