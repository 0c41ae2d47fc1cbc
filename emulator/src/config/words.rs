//! The words of our own settings, for reading and for writing.

use servicebus_broker::{
    BatchLimit, Expiry, FailedForwards, ForwardToDisabled, IdleTimeouts, LocksOnDetach, Tier,
};

use crate::auth::{Claim, TokenCheck};

pub(crate) const EXPIRY: [(&str, Expiry); 2] =
    [("eager", Expiry::Eager), ("on-receive", Expiry::OnReceive)];

pub(crate) const LOCKS_ON_DETACH: [(&str, LocksOnDetach); 2] = [
    ("keep", LocksOnDetach::Keep),
    ("release", LocksOnDetach::Release),
];

pub(crate) const FAILED_FORWARDS: [(&str, FailedForwards); 2] = [
    ("transfer-dead-letter", FailedForwards::TransferDeadLetter),
    ("dead-letter", FailedForwards::DeadLetter),
];

pub(crate) const FORWARD_TO_DISABLED: [(&str, ForwardToDisabled); 2] = [
    ("refuse", ForwardToDisabled::Refuse),
    ("deliver", ForwardToDisabled::Deliver),
];

pub(crate) const BATCH_LIMIT: [(&str, BatchLimit); 2] = [
    ("bytes", BatchLimit::Bytes),
    ("messages", BatchLimit::Messages),
];

pub(crate) const IDLE_TIMEOUTS: [(&str, IdleTimeouts); 2] = [
    ("none", IdleTimeouts::None),
    ("service", IdleTimeouts::Service),
];

pub(crate) const TIERS: [(&str, Tier); 3] = [
    ("basic", Tier::Basic),
    ("standard", Tier::Standard),
    ("premium", Tier::Premium),
];

pub(crate) const TOKEN_CHECK: [(&str, TokenCheck); 2] = [
    ("signature", TokenCheck::Signature),
    ("none", TokenCheck::None),
];

pub(super) const CLAIMS: [(&str, Claim); 3] = [
    ("Send", Claim::Send),
    ("Listen", Claim::Listen),
    ("Manage", Claim::Manage),
];

/// What a value is called.
pub(crate) fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    let mut words = words.iter();
    let found = words.find(|(_, known)| known == value);
    found.expect("every value has a word").0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_word() {
        for expiry in [Expiry::Eager, Expiry::OnReceive] {
            assert!(!word(&EXPIRY, &expiry).is_empty());
        }
        for locks in [LocksOnDetach::Keep, LocksOnDetach::Release] {
            assert!(!word(&LOCKS_ON_DETACH, &locks).is_empty());
        }
        for failed in [
            FailedForwards::TransferDeadLetter,
            FailedForwards::DeadLetter,
        ] {
            assert!(!word(&FAILED_FORWARDS, &failed).is_empty());
        }
        for forwarding in [ForwardToDisabled::Refuse, ForwardToDisabled::Deliver] {
            assert!(!word(&FORWARD_TO_DISABLED, &forwarding).is_empty());
        }
        for limit in [BatchLimit::Bytes, BatchLimit::Messages] {
            assert!(!word(&BATCH_LIMIT, &limit).is_empty());
        }
        for idle in [IdleTimeouts::None, IdleTimeouts::Service] {
            assert!(!word(&IDLE_TIMEOUTS, &idle).is_empty());
        }
        for tier in [Tier::Basic, Tier::Standard, Tier::Premium] {
            assert!(!word(&TIERS, &tier).is_empty());
        }
        for check in [TokenCheck::Signature, TokenCheck::None] {
            assert!(!word(&TOKEN_CHECK, &check).is_empty());
        }
        for claim in Claim::ALL {
            assert_eq!(word(&CLAIMS, &claim), claim.name());
        }
    }
}
