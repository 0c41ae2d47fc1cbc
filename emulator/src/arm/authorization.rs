//! Authorization rules of a namespace, a queue or a topic as resources, and their keys.
//!
//! Keys that the configuration of a namespace declares are returned but cannot be changed.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};

use super::call::Call;
use super::entities::{bad_request, method_not_allowed, not_found};
use super::{Answer, Refusal, member};
use crate::auth::{Claim, Claims, Key, WELL_KNOWN_KEY_NAME};
use crate::namespace::{AdminMetadata, AuthorizationRule, Namespace, SharedEntity};

/// Maximum number of rules of a namespace or an entity (service-bus-quotas).
const MAX_RULES: usize = 12;
/// Longest name, in characters.
const MAX_NAME: usize = 50;

impl Call<'_> {
    /// Answers a request; `rest` is the path after `authorizationRules`. Without an entity the rules are those of the
    /// namespace.
    pub(crate) fn authorization(
        &self,
        namespace: &Namespace,
        entity: Option<&SharedEntity>,
        rest: &[&str],
    ) -> Result<Answer, Refusal> {
        let _alone = namespace.administer();
        let rules = all(namespace, entity);
        let method = self.head.method.as_str();
        if rest.is_empty() {
            return match method {
                "GET" => self.page(&rules, |rule| {
                    self.show_authorization_rule(&format!("{}/{}", self.id(), rule.key_name), rule)
                }),
                other => Err(method_not_allowed(other, "GET")),
            };
        }
        let name = &self.path[self.path.len() - rest.len()];
        let named = |name: &str| {
            rules
                .iter()
                .find(|rule| rule.key_name.eq_ignore_ascii_case(name))
        };
        let found = named(name);
        // Programs expect this rule in every namespace. Another namespace may have the key of this name; then the own
        // one has a longer name.
        let well_known = || {
            let is_well_known = entity.is_none() && name.eq_ignore_ascii_case(WELL_KNOWN_KEY_NAME);
            named(&format!("{WELL_KNOWN_KEY_NAME}-{}", namespace.name())).filter(|_| is_well_known)
        };
        let existing = || {
            let rule = found.or_else(well_known);
            rule.ok_or_else(|| not_found(&self.id()))
        };
        match (method, rest) {
            ("GET", [_]) => Ok(Answer::ok(
                self.show_authorization_rule(&self.id(), existing()?),
            )),
            ("PUT", [_]) => {
                self.shared.resources.check(&self.id(), false)?;
                self.put(namespace, entity, name, found)
            }
            ("DELETE", [_]) => {
                self.shared.resources.check(&self.id(), true)?;
                let Some(rule) = found else {
                    return Ok(Answer::deleted(false));
                };
                check_declared(namespace, entity, &rule.key_name)?;
                change(namespace, entity, |rules| {
                    rules.retain(|own| own.key_name != rule.key_name)
                });
                Ok(Answer::deleted(true))
            }
            ("POST", [_, "listkeys"]) => Ok(Answer::ok(self.keys(namespace, entity, existing()?))),
            ("POST", [_, "regeneratekeys"]) => {
                self.shared.resources.check(&self.id(), false)?;
                let rule = self.regenerated(existing()?)?;
                check_declared(namespace, entity, &rule.key_name)?;
                replace(namespace, entity, rule.clone());
                Ok(Answer::ok(self.keys(namespace, entity, &rule)))
            }
            (other, [_]) => Err(method_not_allowed(other, "GET, PUT, DELETE")),
            (other, _) => Err(method_not_allowed(other, "POST")),
        }
    }

    fn put(
        &self,
        namespace: &Namespace,
        entity: Option<&SharedEntity>,
        name: &str,
        found: Option<&AuthorizationRule>,
    ) -> Result<Answer, Refusal> {
        let properties = member(&self.body, "properties").unwrap_or(&Value::Null);
        let rights = member(properties, "rights").and_then(Value::as_array);
        let mut claims: Vec<Claim> = Vec::new();
        for right in rights.into_iter().flatten() {
            let word = right.as_str().unwrap_or_default();
            let claim = Claim::ALL
                .into_iter()
                .find(|claim| claim.name().eq_ignore_ascii_case(word));
            claims.push(claim.ok_or_else(|| {
                bad_request(&format!(
                    "The right {right} is not allowed; allowed: Send, Listen, Manage."
                ))
            })?);
        }
        let is_whole = !claims.contains(&Claim::Manage)
            || claims.contains(&Claim::Send) && claims.contains(&Claim::Listen);
        if claims.is_empty() || !is_whole {
            return Err(bad_request(
                "'rights' must name at least one of Send, Listen and Manage, and with Manage all of them.",
            ));
        }
        if found.is_none() && !AuthorizationRule::is_name(name, MAX_NAME) {
            return Err(bad_request(&format!(
                "The name '{name}' is not allowed; allowed: 1 to {MAX_NAME} {}.",
                AuthorizationRule::NAMES
            )));
        }
        let claims: Claims = claims.into_iter().collect();
        if let Some(same) = found.filter(|rule| rule.claims == claims) {
            return Ok(Answer::ok(self.show_authorization_rule(&self.id(), same)));
        }
        check_declared(namespace, entity, name)?;
        if found.is_none() && all(namespace, entity).len() >= MAX_RULES {
            return Err(bad_request(&format!(
                "There are {MAX_RULES} authorization rules already, which is the most."
            )));
        }
        let rule = match found {
            Some(found) => AuthorizationRule {
                claims,
                ..found.clone()
            },
            None => AuthorizationRule {
                key_name: name.to_owned(),
                claims,
                primary_key: new_key()?,
                secondary_key: new_key()?,
                created_time: None,
                modified_time: None,
            },
        };
        replace(namespace, entity, rule.clone());
        Ok(Answer::ok(self.show_authorization_rule(&self.id(), &rule)))
    }

    fn regenerated(&self, rule: &AuthorizationRule) -> Result<AuthorizationRule, Refusal> {
        let given = member(&self.body, "key").filter(|key| !key.is_null());
        let key = given.map_or_else(new_key, checked_key)?;
        let mut rule = rule.clone();
        let kind = member(&self.body, "keyType")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind.to_ascii_lowercase().as_str() {
            "primarykey" => rule.primary_key = key,
            "secondarykey" => rule.secondary_key = key,
            _ => {
                return Err(bad_request(&format!(
                    "The keyType '{kind}' is not allowed; allowed: PrimaryKey, SecondaryKey."
                )));
            }
        }
        Ok(rule)
    }

    fn keys(
        &self,
        namespace: &Namespace,
        entity: Option<&SharedEntity>,
        rule: &AuthorizationRule,
    ) -> Value {
        let place = &self.shared.namespaces.place;
        let string = |key: &str| {
            let key = Key {
                name: rule.key_name.clone(),
                key: key.to_owned(),
                claims: rule.claims,
            };
            let string = place.connection_string(&namespace.config, &key);
            match entity {
                Some(entity) => format!("{string}EntityPath={}", entity.path),
                None => string,
            }
        };
        json!({
            "primaryConnectionString": string(&rule.primary_key),
            "secondaryConnectionString": string(&rule.secondary_key),
            "primaryKey": rule.primary_key,
            "secondaryKey": rule.secondary_key,
            "keyName": rule.key_name,
        })
    }
}

/// Returns the rules of an entity or of the namespace, declared ones first, whose two keys are the same.
fn all(namespace: &Namespace, entity: Option<&SharedEntity>) -> Vec<AuthorizationRule> {
    match entity {
        Some(entity) => entity.metadata(|metadata| metadata.authorization_rules().to_vec()),
        None => {
            let declared = namespace.config.keys.iter().map(|key| AuthorizationRule {
                key_name: key.name.clone(),
                claims: key.claims,
                primary_key: key.key.clone(),
                secondary_key: key.key.clone(),
                created_time: None,
                modified_time: None,
            });
            declared
                .chain(namespace.added_rules.lock().iter().cloned())
                .collect()
        }
    }
}

fn change(
    namespace: &Namespace,
    entity: Option<&SharedEntity>,
    change: impl FnOnce(&mut Vec<AuthorizationRule>),
) {
    match entity {
        Some(entity) => {
            entity.metadata(|metadata| {
                let mut own: AdminMetadata = metadata.admin_metadata();
                change(&mut own.authorization_rules);
                metadata.set_admin_metadata(own);
            });
            namespace.append_metadata(entity);
        }
        None => {
            let mut added = namespace.added_rules.lock();
            change(&mut added);
            namespace.append_added_rules(&added);
        }
    }
}

fn replace(namespace: &Namespace, entity: Option<&SharedEntity>, rule: AuthorizationRule) {
    change(namespace, entity, |rules| {
        match rules.iter_mut().find(|own| own.key_name == rule.key_name) {
            Some(own) => *own = rule,
            None => rules.push(rule),
        }
    });
}

fn check_declared(
    namespace: &Namespace,
    entity: Option<&SharedEntity>,
    name: &str,
) -> Result<(), Refusal> {
    let mut declared = namespace.config.keys.iter().filter(|_| entity.is_none());
    if declared.all(|key| !key.name.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    Err(Refusal::conflict(&format!(
        "The key '{name}' is declared in the configuration of the namespace, and stays as it is there."
    )))
}

/// Checks a client's own key. The value is a secret, and is not repeated.
fn checked_key(given: &Value) -> Result<String, Refusal> {
    let characters = AuthorizationRule::KEY_CHARACTERS;
    let key = given
        .as_str()
        .filter(|key| key.encode_utf16().count() == characters)
        .filter(|key| !key.contains(|c: char| c == ';' || c.is_control()));
    key.map(str::to_owned).ok_or_else(|| {
        bad_request(&format!(
            "'key' must be a text of {characters} characters other than ';' and control characters."
        ))
    })
}

fn new_key() -> Result<String, Refusal> {
    let mut bytes = [0; 32];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(Refusal::no_random_numbers)?;
    Ok(BASE64_STANDARD.encode(bytes))
}

impl Call<'_> {
    fn show_authorization_rule(&self, id: &str, rule: &AuthorizationRule) -> Value {
        let rights = json!({ "rights": rule.claims.names() });
        self.envelope(id, &rule.key_name, "AuthorizationRules", rights)
    }
}
