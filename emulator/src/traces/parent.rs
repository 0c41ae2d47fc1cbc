//! The parent of a message's spans, and whether they are sampled: W3C trace context and OpenTelemetry's samplers.

use servicebus_broker::Message;
use servicebus_codec::{DecodeError, Reader};

/// Application properties with a parent, the preferred first: SDKs write both, older ones only the second, in the same form.
const NAMES: [&str; 2] = ["traceparent", "Diagnostic-Id"];

/// A span of another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) is_sampled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sampler {
    /// Whether a parent's decision applies.
    pub(super) follows_parent: bool,
    /// The sampled part of the others, from 0 to 1.
    pub(super) ratio: f64,
}

impl Sampler {
    /// Returns whether spans of this trace are sampled. Samplers of equal ratio select the same traces.
    pub(super) fn takes(&self, trace: u128, parent: Option<&Parent>) -> bool {
        if let Some(parent) = parent.filter(|_| self.follows_parent) {
            return parent.is_sampled;
        }
        let limit = (self.ratio * (1_u64 << 63) as f64) as u64;
        trace as u64 >> 1 < limit
    }
}

pub(super) fn of_message(message: &Message) -> Option<Parent> {
    read(message.application_properties()).ok().flatten()
}

fn read(section: &[u8]) -> Result<Option<Parent>, DecodeError> {
    if section.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new(section);
    reader.descriptor()?;
    let mut found = [None; 2];
    for entry in reader.map()?.raw_entries() {
        let (key, value) = entry?;
        let key = Reader::new(key).value()?;
        let name = NAMES.iter().position(|name| key.as_text() == Some(name));
        if let Some(name) = name {
            found[name] = Reader::new(value).value()?.as_text().and_then(parse);
        }
    }
    Ok(found[0].or(found[1]))
}

/// Parses `00-{trace}-{span}-{flags}`; of later versions the fields of the first.
fn parse(text: &str) -> Option<Parent> {
    let mut parts = text.split('-');
    let mut number = |digits: usize| {
        let part = parts.next()?;
        let is_hexadecimal = part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
        is_hexadecimal.then(|| u128::from_str_radix(part, 16).ok())?
    };
    let version = number(2).filter(|&version| version != 0xff)?;
    let parent = Parent {
        trace: number(32).filter(|&trace| trace != 0)?,
        span: number(16).filter(|&span| span != 0)? as u64,
        is_sampled: number(2)? & 1 == 1,
    };
    (version != 0 || parts.next().is_none()).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: Parent = Parent {
        trace: 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
        span: 0xb7ad_6b71_6920_3331,
        is_sampled: true,
    };

    #[test]
    fn a_trace_parent_is_parsed_in_the_w3c_format_only() {
        let ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331";
        let unsampled = Parent {
            is_sampled: false,
            ..PARENT
        };
        assert_eq!(parse(&format!("00-{ids}-01")), Some(PARENT));
        assert_eq!(parse(&format!("00-{ids}-02")), Some(unsampled));
        assert_eq!(parse(&format!("cc-{ids}-01-more")), Some(PARENT));
        for wrong in [
            String::new(),
            "|7a8b.1.".to_owned(),
            format!("00-{ids}"),
            format!("00-{ids}-1"),
            format!("00-{ids}-01-more"),
            format!("ff-{ids}-01"),
            format!("00-{}-01", ids.replace('0', "g")),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-0af7651916cd43dd8448eb211c80319c-{}-01", "0".repeat(16)),
            format!("00-+{}-01", &ids[1..]),
        ] {
            assert_eq!(parse(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_sampler_decides_by_the_parent_or_the_trace_id() {
        let sampler = |follows_parent, ratio| Sampler {
            follows_parent,
            ratio,
        };
        let low = Parent { trace: 1, ..PARENT };
        let high = u128::from(u64::MAX);
        let refused = Parent {
            is_sampled: false,
            ..PARENT
        };
        assert!(sampler(false, 1.0).takes(high, Some(&refused)));
        assert!(!sampler(false, 0.0).takes(0, Some(&low)));
        assert!(!sampler(true, 1.0).takes(high, Some(&refused)));
        assert!(sampler(true, 0.0).takes(high, Some(&low)));
        assert!(sampler(true, 0.5).takes(1, None));
        assert!(!sampler(true, 0.5).takes(high, None));
    }
}
