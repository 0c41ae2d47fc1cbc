//! What a configuration means: from blocks of the right shape to namespaces that can be served.
//!
//! Everything that is not legal is reported at its place and resolving goes on, so that one run finds
//! every problem. What comes out is only used when nothing was reported.

mod entities;
mod jwt;
mod keys;
mod rule;
pub(super) mod settings;
pub(super) mod targets;

use std::collections::BTreeMap;
use std::path::Path;

use servicebus_broker::{NamespaceSettings, Tier, check_name};

use super::NamespaceConfig;
use super::document::{Document, EmulatorBlock, NamespaceBlock};
use super::reader::{Located, Place, Report};

use keys::KeyNames;

/// Longest name of a namespace: it may be a label of a host name.
const MAX_NAMESPACE_NAME: usize = 63;

/// The namespaces of a document; those that name no tier are in `tier`, and files that it names in `directory`.
pub(super) fn resolve(
    report: &Report<'_>,
    document: Document,
    tier: Tier,
    directory: &Path,
) -> Vec<NamespaceConfig> {
    let Some(Located {
        place,
        value: blocks,
    }) = document.namespaces
    else {
        return Vec::new();
    };
    if blocks.is_empty() {
        report.problem(&place, "at least one namespace must be declared", None);
    }
    let names = blocks.iter().filter_map(|block| block.name.as_ref());
    report_repeated(report, "namespace", names);
    let mut names = KeyNames::declared(report, &blocks);
    let resolved = blocks
        .into_iter()
        .map(|block| namespace(report, block, &mut names, tier, directory));
    resolved.collect()
}

fn namespace(
    report: &Report<'_>,
    block: NamespaceBlock,
    names: &mut KeyNames,
    default_tier: Tier,
    directory: &Path,
) -> NamespaceConfig {
    let name = block.name.map(|name| {
        check_namespace_name(report, &name);
        name.value
    });
    let name = name.unwrap_or_default();
    let settings = settings(&block.emulator, default_tier);
    let (queues, topics) = entities::entities(report, block.queues, block.topics, settings.tier);
    NamespaceConfig {
        keys: names.keys(report, &name, block.emulator.keys),
        token_check: block.emulator.token_check.unwrap_or_default(),
        jwt: jwt::jwt(report, block.emulator.jwt, directory),
        queues,
        topics,
        name,
        settings,
    }
}

fn settings(block: &EmulatorBlock, default_tier: Tier) -> NamespaceSettings {
    let defaults = NamespaceSettings::default();
    NamespaceSettings {
        expiry: block.expiry.unwrap_or(defaults.expiry),
        locks_on_detach: block.locks_on_detach.unwrap_or(defaults.locks_on_detach),
        failed_forwards: block.failed_forwards.unwrap_or(defaults.failed_forwards),
        tier: block.tier.unwrap_or(default_tier),
    }
}

fn check_namespace_name(report: &Report<'_>, name: &Located<String>) {
    let text = &name.value;
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edges = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric());
    if !edges || text.len() > MAX_NAMESPACE_NAME || !text.chars().all(legal) {
        let message = format!(
            "{} is no legal name of a namespace",
            report.excerpt(&name.place)
        );
        let allowed = format!(
            "1 to {MAX_NAMESPACE_NAME} letters, digits, '-', '_' and '.', a letter or digit first and last"
        );
        report.problem(&name.place, message, Some(allowed));
    }
}

/// Reports the names that stand before already, without regard to case.
fn report_repeated<'a>(
    report: &Report<'_>,
    thing: &str,
    names: impl Iterator<Item = &'a Located<String>>,
) {
    let mut seen: BTreeMap<String, &Place> = BTreeMap::new();
    for Located { place, value } in names {
        let key = value.chars().flat_map(char::to_lowercase).collect();
        if let Some(first) = seen.get(&key) {
            let name = report.excerpt(place);
            let message = format!(
                "{name} names another {thing} already, at {}; case makes no difference",
                first.path
            );
            report.problem(place, message, None);
        } else {
            seen.insert(key, place);
        }
    }
}

/// Reports a name that a subscription or rule cannot have.
fn check_small_name(report: &Report<'_>, written: &Located<String>) {
    let Located { place, value } = written;
    if let Err(error) = check_name(value) {
        let message = format!("{} is no legal name: {error}", report.excerpt(place));
        report.problem(place, message, None);
    }
}
