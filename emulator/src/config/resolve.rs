//! What a configuration means: from blocks of the right shape to namespaces that can be served.
//!
//! Everything that is not legal is reported at its place and resolving goes on, so that one run finds
//! every problem. What comes out is only used when nothing was reported.

pub(crate) mod entities;
mod keys;
mod rule;

use std::collections::HashMap;
use std::path::Path;

use servicebus_broker::check_name;

use super::document::{Document, NamespaceBlock};
use super::reader::{Located, Place, Report};
use super::{Address, MAX_NAMESPACES, NamespaceConfig};

use keys::KeyNames;
pub(crate) use keys::made_up_key;

/// Longest name of a namespace: it may be a label of a host name.
const MAX_NAMESPACE_NAME: usize = 63;

/// What a namespace may be called, in words.
pub(crate) const NAMESPACE_NAMES: &str =
    "1 to 63 letters, digits, '-', '_' and '.', a letter or digit first and last";

/// What a document is read for.
pub(crate) struct Purpose<'a> {
    /// Which files the document may name.
    pub(crate) files: Files<'a>,
    /// The name of the one namespace that is made of it, not that of the document.
    pub(crate) only: Option<&'a str>,
    /// Whether a key of this name belongs to a namespace that is served already.
    pub(crate) is_taken: &'a dyn Fn(&str) -> bool,
}

/// Which files a document may name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Files<'a> {
    /// Any, with names relative to this directory.
    Beside(&'a Path),
    /// None: a request opens no files here.
    Refused,
}

/// The namespaces of a document.
pub(crate) fn resolve(
    report: &Report<'_>,
    document: Document,
    purpose: &Purpose<'_>,
) -> Vec<NamespaceConfig> {
    let Some(Located {
        place,
        value: blocks,
    }) = document.namespaces
    else {
        return Vec::new();
    };
    check_count(report, &place, blocks.len(), purpose);
    let names = blocks.iter().filter_map(|block| block.name.as_ref());
    report_repeated(report, "namespace", names);
    report_repeated_addresses(report, &blocks);
    let mut names = KeyNames::declared(report, &blocks, purpose.is_taken);
    let resolved = blocks
        .into_iter()
        .map(|block| namespace(report, block, &mut names, purpose));
    resolved.collect()
}

fn check_count(report: &Report<'_>, place: &Place, count: usize, purpose: &Purpose<'_>) {
    match count {
        0 => report.problem(place, "at least one namespace must be declared", None),
        1 => {}
        _ if purpose.only.is_some() => {
            let message = format!("{count} namespaces are declared, and one is to be made");
            report.problem(place, message, Some("one namespace".to_owned()));
        }
        _ if count > MAX_NAMESPACES => {
            let message = format!("{count} namespaces are declared");
            report.problem(place, message, Some(format!("at most {MAX_NAMESPACES}")));
        }
        _ => {}
    }
}

fn namespace(
    report: &Report<'_>,
    block: NamespaceBlock,
    names: &mut KeyNames<'_>,
    purpose: &Purpose<'_>,
) -> NamespaceConfig {
    let name = block.name.map(|name| {
        check_namespace_name(report, &name);
        name.value
    });
    let name = purpose.only.map(str::to_owned).or(name).unwrap_or_default();
    let settings = block.emulator.settings;
    let (queues, topics) = entities::entities(report, block.queues, block.topics, settings.tier);
    NamespaceConfig {
        keys: names.keys(report, &name, block.emulator.keys),
        token_check: block.emulator.token_check.unwrap_or_default(),
        jwt: keys::jwt(report, block.emulator.jwt, purpose.files),
        arm: block.emulator.arm.unwrap_or_default(),
        address: address(report, block.emulator.address),
        queues,
        topics,
        name,
        settings,
    }
}

/// Whether a namespace may be called that.
pub(crate) fn is_namespace_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edges = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    edges && name.len() <= MAX_NAMESPACE_NAME && name.chars().all(legal)
}

fn check_namespace_name(report: &Report<'_>, name: &Located<String>) {
    if !is_namespace_name(&name.value) {
        let message = format!(
            "{} is no legal name of a namespace",
            report.excerpt(&name.place)
        );
        report.problem(&name.place, message, Some(NAMESPACE_NAMES.to_owned()));
    }
}

/// Reports the names that stand before already, without regard to case.
fn report_repeated<'a>(
    report: &Report<'_>,
    thing: &str,
    names: impl Iterator<Item = &'a Located<String>>,
) {
    let mut seen: HashMap<String, &Place> = HashMap::new();
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

/// The address; what is none is reported.
fn address(report: &Report<'_>, written: Option<Located<String>>) -> Option<Address> {
    let Located { place, value } = written?;
    let address = value.parse();
    if address.is_err() {
        let message = format!("{} is no address of a namespace", report.excerpt(&place));
        report.problem(&place, message, Some(Address::ALLOWED.to_owned()));
    }
    address.ok()
}

/// Reports the addresses that another namespace has already.
fn report_repeated_addresses(report: &Report<'_>, blocks: &[NamespaceBlock]) {
    let mut seen = HashMap::new();
    let written = blocks
        .iter()
        .filter_map(|block| block.emulator.address.as_ref());
    for Located { place, value } in written {
        let Ok(address) = value.parse::<Address>() else {
            continue;
        };
        if let Some(first) = seen.insert(address, &place.path) {
            let message = format!(
                "{} is the address of another namespace already, at {first}; an address chooses the namespace",
                report.excerpt(place)
            );
            report.problem(place, message, None);
        }
    }
}
