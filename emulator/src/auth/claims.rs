//! The three rights of Service Bus and sets of them.

use std::fmt;
use std::ops::BitOr;

/// One right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// To send to an entity.
    Send,
    /// To receive from an entity.
    Listen,
    /// To create, change and delete entities.
    Manage,
}

/// A set of rights. Managing does not imply the others: the service only grants it together with them.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Claims(u8);

impl Claim {
    /// Every right, in the order in which Service Bus lists them.
    pub const ALL: [Self; 3] = [Self::Send, Self::Listen, Self::Manage];

    /// The right as the service writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "Send",
            Self::Listen => "Listen",
            Self::Manage => "Manage",
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Send => 0b001,
            Self::Listen => 0b010,
            Self::Manage => 0b100,
        }
    }
}

impl Claims {
    /// Every right.
    pub const ALL: Self = Self(0b111);
    /// To send and nothing else.
    pub const SEND: Self = Self(0b001);
    /// To receive and nothing else.
    pub const LISTEN: Self = Self(0b010);
    /// No right.
    pub const NONE: Self = Self(0);

    /// Whether the set has the right.
    pub fn contains(self, claim: Claim) -> bool {
        self.0 & claim.bit() != 0
    }
}

impl BitOr for Claims {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Claim> for Claims {
    fn from_iter<I: IntoIterator<Item = Claim>>(claims: I) -> Self {
        Self(claims.into_iter().fold(0, |bits, claim| bits | claim.bit()))
    }
}

impl fmt::Display for Claims {
    /// The rights with commas between, or `none`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = Claim::ALL.into_iter().filter(|claim| self.contains(*claim));
        let names: Vec<&str> = held.map(Claim::name).collect();
        match names.is_empty() {
            true => formatter.write_str("none"),
            false => formatter.write_str(&names.join(", ")),
        }
    }
}

impl fmt::Debug for Claims {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Claims({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_in() {
        let claims: Claims = [Claim::Send, Claim::Manage].into_iter().collect();
        assert!(claims.contains(Claim::Send) && claims.contains(Claim::Manage));
        assert!(!claims.contains(Claim::Listen));
        assert_eq!(claims.to_string(), "Send, Manage");
        assert_eq!(Claim::ALL.into_iter().collect::<Claims>(), Claims::ALL);
        assert_eq!(Claims::NONE.to_string(), "none");
        let both: Claims = [Claim::Send, Claim::Listen].into_iter().collect();
        assert_eq!(Claims::SEND | Claims::LISTEN, both);
    }
}
