//! The authorization rules of a queue or topic: named pairs of keys with rights (admin-http.md §6.3).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use servicebus_config::descriptions::Instant;

use super::super::refusal::ServiceError;
use crate::auth::{Claim, Claims};
use crate::namespace::AuthorizationRule;
use crate::xml::{Element, Writer};

/// Maximum number of rules of an entity (service-bus-quotas).
const MAX_RULES: usize = 12;
/// Longest name of a rule, in characters.
const MAX_KEY_NAME: usize = 256;
/// Length of a key, in characters.
const KEY_CHARACTERS: usize = AuthorizationRule::KEY_CHARACTERS;
/// Length of a generated key, in bytes before base64.
const KEY_LENGTH: usize = 32;
const RULE: &str = "AuthorizationRule";
const RULE_TYPE: &str = "SharedAccessAuthorizationRule";

/// The sources of values that a description of rules leaves out.
pub(crate) struct KeyGenerator<'a> {
    /// Unpredictable bits, 64 at a time.
    pub(crate) bits: &'a dyn Fn() -> u64,
}

impl KeyGenerator<'_> {
    fn key(&self) -> String {
        let bytes: Vec<u8> = (0..KEY_LENGTH / 8)
            .flat_map(|_| (self.bits)().to_be_bytes())
            .collect();
        BASE64_STANDARD.encode(bytes)
    }
}

/// Parses the whole list. A rule that existed `before` keeps its keys if the description has none, as when a client got them
/// masked.
pub(crate) fn read_rules(
    list: &Element,
    before: &[AuthorizationRule],
    keys: &KeyGenerator<'_>,
) -> Result<Vec<AuthorizationRule>, ServiceError> {
    let mut rules: Vec<AuthorizationRule> = Vec::new();
    for element in list.parts(RULE) {
        let rule = read_rule(element, before, keys)?;
        if rules.iter().any(|other| other.key_name == rule.key_name) {
            let text = "The names of authorization rules must differ.";
            return Err(ServiceError::parameter(text, "KeyName", &rule.key_name));
        }
        rules.push(rule);
    }
    if rules.len() > MAX_RULES {
        let text = format!("An entity can have at most {MAX_RULES} authorization rules.");
        let count = rules.len().to_string();
        return Err(ServiceError::parameter(text, "AuthorizationRules", &count));
    }
    Ok(rules)
}

fn read_rule(
    element: &Element,
    before: &[AuthorizationRule],
    keys: &KeyGenerator<'_>,
) -> Result<AuthorizationRule, ServiceError> {
    if let Some(other) = &element.xsi_type
        && other.name != RULE_TYPE
    {
        let text = format!("The type of an authorization rule must be {RULE_TYPE}.");
        return Err(ServiceError::parameter(text, RULE, &other.name));
    }
    let text = |name| element.part(name).map_or("", |part| part.text.trim());
    let key_name = text("KeyName");
    let before = before.iter().find(|rule| rule.key_name == key_name);
    if before.is_none() && !AuthorizationRule::is_name(key_name, MAX_KEY_NAME) {
        let text = format!(
            "The name of an authorization rule must have 1 to {MAX_KEY_NAME} {}.",
            AuthorizationRule::NAMES
        );
        return Err(ServiceError::parameter(text, "KeyName", key_name));
    }
    let instant = |name| match text(name) {
        "" => Ok(None),
        given if Instant::read(given).is_some() => Ok(Some(given.into())),
        given => {
            let message =
                format!("The value of '{name}' cannot be understood; allowed: a dateTime.");
            Err(ServiceError::parameter(message, name, given))
        }
    };
    // White space is a part of a key, but not of an element that has nothing else.
    let key = |name, before: Option<&String>| {
        let given = element.part(name).map_or("", |part| part.text.as_str());
        match given.encode_utf16().count() == KEY_CHARACTERS || !given.trim().is_empty() {
            true => checked_key(name, given),
            false => Ok(before.cloned().unwrap_or_else(|| keys.key())),
        }
    };
    Ok(AuthorizationRule {
        claims: read_rights(element, key_name)?,
        primary_key: key("PrimaryKey", before.map(|rule| &rule.primary_key))?,
        secondary_key: key("SecondaryKey", before.map(|rule| &rule.secondary_key))?,
        created_time: instant("CreatedTime")?,
        modified_time: instant("ModifiedTime")?,
        key_name: key_name.to_owned(),
    })
}

/// Accepts any text of the length of a base64 key (observed 31). The value is a secret, and is not repeated.
fn checked_key(name: &str, key: &str) -> Result<String, ServiceError> {
    let length = key.encode_utf16().count();
    if length == KEY_CHARACTERS {
        return Ok(key.to_owned());
    }
    let text = format!("A key must have {KEY_CHARACTERS} characters.");
    let found = format!("{length} characters");
    Err(ServiceError::parameter(text, name, &found))
}

fn read_rights(element: &Element, key_name: &str) -> Result<Claims, ServiceError> {
    let rights = element.part("Rights").into_iter();
    let mut claims: Vec<Claim> = Vec::new();
    for right in rights.flat_map(|rights| rights.parts("AccessRights")) {
        let name = right.text.trim();
        let claim = Claim::ALL.into_iter().find(|claim| claim.name() == name);
        let claim = claim.filter(|claim| !claims.contains(claim));
        let wrong = || {
            let text = format!(
                "The rights of '{key_name}' must be Manage, Send and Listen, each at most once."
            );
            ServiceError::parameter(text, "Rights", name)
        };
        claims.push(claim.ok_or_else(wrong)?);
    }
    let is_whole = !claims.contains(&Claim::Manage) || claims.len() == Claim::ALL.len();
    if claims.is_empty() || !is_whole {
        let names: Vec<&str> = claims.iter().map(|claim| claim.name()).collect();
        let text = format!(
            "'{key_name}' must have a right at least, and Manage only together with Send and Listen."
        );
        return Err(ServiceError::parameter(text, "Rights", &names.join(", ")));
    }
    Ok(claims.into_iter().collect())
}

pub(crate) fn write_rules(rules: &[AuthorizationRule], out: &mut Writer) {
    out.open("AuthorizationRules", &[]);
    for rule in rules {
        out.open(RULE, &[("i:type", RULE_TYPE)]);
        out.element("ClaimType", "SharedAccessKey");
        out.element("ClaimValue", "None");
        out.open("Rights", &[]);
        for claim in [Claim::Manage, Claim::Send, Claim::Listen] {
            if rule.claims.contains(claim) {
                out.element("AccessRights", claim.name());
            }
        }
        out.close("Rights");
        // Only if it was given (observed 35).
        for (name, time) in [
            ("CreatedTime", &rule.created_time),
            ("ModifiedTime", &rule.modified_time),
        ] {
            if let Some(time) = time {
                out.element(name, time);
            }
        }
        out.element("KeyName", &rule.key_name);
        out.element("PrimaryKey", &rule.primary_key);
        out.element("SecondaryKey", &rule.secondary_key);
        out.close(RULE);
    }
    out.close("AuthorizationRules");
}
