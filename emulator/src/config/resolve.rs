//! What a configuration means: from blocks of the right shape to namespaces that can be served.
//!
//! Everything that is not legal is reported at its place and resolving goes on, so that one run finds
//! every problem. What comes out is only used when nothing was reported.

mod keys;
pub(super) mod queue;
mod queues;
pub(super) mod targets;

use std::collections::BTreeMap;

use servicebus_broker::{NamespaceSettings, Tier};

use super::NamespaceConfig;
use super::document::{Document, EmulatorBlock, NamespaceBlock};
use super::reader::{Located, Place, Report};

use keys::KeyNames;

/// Longest name of a namespace: it may be a label of a host name.
const MAX_NAMESPACE_NAME: usize = 63;

/// The namespaces of a document; those that name no tier are in `tier`.
pub(super) fn resolve(report: &Report<'_>, document: Document, tier: Tier) -> Vec<NamespaceConfig> {
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
    report_repeated_names(report, &blocks);
    let mut names = KeyNames::declared(report, &blocks);
    let resolved = blocks
        .into_iter()
        .map(|block| namespace(report, block, &mut names, tier));
    resolved.collect()
}

fn namespace(
    report: &Report<'_>,
    block: NamespaceBlock,
    names: &mut KeyNames,
    default_tier: Tier,
) -> NamespaceConfig {
    let name = block.name.map(|name| {
        check_namespace_name(report, &name);
        name.value
    });
    let name = name.unwrap_or_default();
    if let Some(place) = &block.topics {
        unsupported(report, place, "topics");
    }
    if let Some(place) = &block.emulator.jwt_keys {
        unsupported(report, place, "checking the signatures of JSON web tokens");
    }
    let settings = settings(&block.emulator, default_tier);
    NamespaceConfig {
        keys: names.keys(report, &name, block.emulator.keys),
        token_check: block.emulator.token_check.unwrap_or_default(),
        jwt: block.emulator.jwt.unwrap_or_default(),
        queues: queues::queues(report, block.queues, settings.tier),
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

fn report_repeated_names(report: &Report<'_>, blocks: &[NamespaceBlock]) {
    let mut seen: BTreeMap<String, &Place> = BTreeMap::new();
    for name in blocks.iter().filter_map(|block| block.name.as_ref()) {
        match seen.get(&name.value.to_lowercase()) {
            Some(first) => report_taken(report, &name.place, "namespace", first),
            None => {
                seen.insert(name.value.to_lowercase(), &name.place);
            }
        }
    }
}

fn report_taken(report: &Report<'_>, place: &Place, thing: &str, first: &Place) {
    let name = report.excerpt(place);
    let message = format!(
        "{name} names another {thing} already, at {}; case makes no difference",
        first.path
    );
    report.problem(place, message, None);
}

fn unsupported(report: &Report<'_>, place: &Place, feature: &str) {
    let message = format!("{feature}: not supported by this version yet");
    report.problem(place, message, None);
}
