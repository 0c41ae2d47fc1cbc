//! The faults of a run as a text that can be stored: `x1:worker.complete@orders/o-2#1=drop-after`.

use std::{fmt, str::FromStr};

use crate::Effect;

const VERSION: &str = "x1";

/// The faults of a run: the keys of the operations, and the effects.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Token(pub Vec<(String, Effect)>);

/// Why a text is not a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The prefix is missing.
    #[error(
        "\"{0}\" is not a token: a token begins with `x1:`, as in x1:worker.complete@orders/o-1#1=drop-after; copy it from the line `replay:` of a report"
    )]
    NoToken(String),
    /// The token has another version.
    #[error(
        "the token has version {0}, but this harness reads x1: explore again without it, and copy the token that the report then shows"
    )]
    Version(String),
    /// An operation has no effect.
    #[error("`{0}` in the token names no effect: write `=` and an effect after the operation")]
    NoEffect(String),
    /// The effect does not exist.
    #[error("the token names the effect `{name}`, which does not exist; allowed are {allowed}")]
    Effect {
        /// The name in the token.
        name: String,
        /// The names that exist.
        allowed: String,
    },
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let no_token = || TokenError::NoToken(text.to_owned());
        let (version, faults) = text.trim().split_once(':').ok_or_else(no_token)?;
        let number = version.strip_prefix('x').ok_or_else(no_token)?;
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(no_token());
        }
        if version != VERSION {
            return Err(TokenError::Version(version.to_owned()));
        }
        let faults = faults.split('+').map(|fault| {
            let pair = fault.rsplit_once('=');
            let (key, name) = pair.ok_or_else(|| TokenError::NoEffect(fault.to_owned()))?;
            let effect = Effect::named(name).ok_or_else(|| unknown_effect(name))?;
            Ok((key.to_owned(), effect))
        });
        faults.collect::<Result<_, _>>().map(Self)
    }
}

fn unknown_effect(name: &str) -> TokenError {
    let names = Effect::ALL.iter().map(|effect| effect.name());
    TokenError::Effect {
        name: name.to_owned(),
        allowed: Vec::from_iter(names).join(", "),
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = self.0.iter().map(|(key, effect)| format!("{key}={effect}"));
        write!(f, "{VERSION}:{}", Vec::from_iter(faults).join("+"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> String {
        text.parse::<Token>().unwrap_err().to_string()
    }

    #[test]
    fn an_invalid_token_is_explained() {
        insta::assert_snapshot!(
            [
                "worker",
                "x9:a.send@q#1=drop-after",
                "x1:a.send@q#1",
                "x1:a.send@q#1=explode",
            ]
            .map(read)
            .join("\n"),
            @r#"
        "worker" is not a token: a token begins with `x1:`, as in x1:worker.complete@orders/o-1#1=drop-after; copy it from the line `replay:` of a report
        the token has version x9, but this harness reads x1: explore again without it, and copy the token that the report then shows
        `a.send@q#1` in the token names no effect: write `=` and an effect after the operation
        the token names the effect `explode`, which does not exist; allowed are postpone, elsewhere, server-busy, answer-408, answer-500, answer-503, lose-reply, detach-before, detach-after, deliver-twice, lose-lock, lose-session-lock, reject, close, failover, failover-before, drop-before, drop-after, crash-before, crash-after
        "#
        );
    }

    proptest! {
        #[test]
        fn a_token_round_trips(
            faults in prop::collection::vec(("[a-z.@/%0-9#]{1,20}", 0..Effect::ALL.len()), 1..3),
        ) {
            let faults = faults.into_iter().map(|(key, effect)| (key, Effect::ALL[effect]));
            let token = Token(faults.collect());
            prop_assert_eq!(token.to_string().parse(), Ok(token));
        }
    }
}
