//! The words for the values of this emulator's own settings.

use servicebus_broker::{
    BatchLimit, Expiry, FailedForwards, ForwardToDisabled, IdleTimeouts, LocksOnDetach,
    NamespaceSettings, Tier,
};

use super::Arm;
use super::reader::Object;
use crate::auth::{Claim, TokenCheck};

/// A setting of a namespace, with a word for each value.
#[derive(Debug)]
pub struct Setting {
    /// Its key in a configuration.
    pub name: &'static str,
    /// Reads the setting, if it is present.
    pub(crate) read: fn(&mut Object<'_, '_>, &mut NamespaceSettings),
    /// Returns the word for the current value.
    pub word: fn(&NamespaceSettings) -> &'static str,
}

macro_rules! setting {
    ($name:literal, $field:ident, $words:expr) => {
        Setting {
            name: $name,
            read: |object, settings| {
                if let Some(found) = object.choice($name, &$words) {
                    settings.$field = found.value;
                }
            },
            word: |settings| word(&$words, &settings.$field),
        }
    };
}

/// All settings that change the behaviour of entities.
pub static SETTINGS: [Setting; 7] = [
    setting!("Tier", tier, TIERS),
    setting!(
        "Expiry",
        expiry,
        [("eager", Expiry::Eager), ("on-receive", Expiry::OnReceive)]
    ),
    setting!(
        "LocksOnDetach",
        locks_on_detach,
        [
            ("keep", LocksOnDetach::Keep),
            ("release", LocksOnDetach::Release)
        ]
    ),
    setting!(
        "FailedForwards",
        failed_forwards,
        [
            ("transfer-dead-letter", FailedForwards::TransferDeadLetter),
            ("dead-letter", FailedForwards::DeadLetter),
        ]
    ),
    setting!(
        "ForwardToDisabled",
        forward_to_disabled,
        [
            ("refuse", ForwardToDisabled::Refuse),
            ("deliver", ForwardToDisabled::Deliver)
        ]
    ),
    setting!(
        "BatchLimit",
        batch_limit,
        [
            ("bytes", BatchLimit::Bytes),
            ("messages", BatchLimit::Messages)
        ]
    ),
    setting!(
        "IdleTimeouts",
        idle_timeouts,
        [
            ("none", IdleTimeouts::None),
            ("service", IdleTimeouts::Service)
        ]
    ),
];

/// Returns the settings of a namespace by name, with the words for their values.
pub fn setting_names(
    settings: &NamespaceSettings,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    SETTINGS.iter().map(|own| (own.name, (own.word)(settings)))
}

pub(crate) const TIERS: [(&str, Tier); 3] = [
    ("basic", Tier::Basic),
    ("standard", Tier::Standard),
    ("premium", Tier::Premium),
];

/// The words for token checks.
pub const TOKEN_CHECK: [(&str, TokenCheck); 2] = [
    ("signature", TokenCheck::Signature),
    ("none", TokenCheck::None),
];

/// The words for [`Arm`].
pub const ARM: [(&str, Arm); 2] = [("on", Arm::On), ("off", Arm::Off)];

pub(crate) const CLAIMS: [(&str, Claim); 3] = [
    ("Send", Claim::Send),
    ("Listen", Claim::Listen),
    ("Manage", Claim::Manage),
];

/// Returns the word for a value.
pub fn word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    let mut words = words.iter();
    let found = words.find(|(_, known)| known == value);
    found.expect("every value has a word").0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_value_has_a_keyword() {
        let words =
            |settings: NamespaceSettings| SETTINGS.each_ref().map(|own| (own.word)(&settings));
        let usual = words(NamespaceSettings::default());
        let other = words(NamespaceSettings {
            tier: Tier::Basic,
            expiry: Expiry::OnReceive,
            locks_on_detach: LocksOnDetach::Release,
            failed_forwards: FailedForwards::DeadLetter,
            forward_to_disabled: ForwardToDisabled::Deliver,
            batch_limit: BatchLimit::Messages,
            idle_timeouts: IdleTimeouts::Service,
        });
        assert!(
            usual
                .iter()
                .zip(&other)
                .all(|(usual, other)| usual != other)
        );
        for tier in Tier::ALL {
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
