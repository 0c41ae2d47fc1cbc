//! The addresses that namespaces have of their own.

use std::collections::HashMap;

use super::NamespaceBlock;
use crate::config::Address;
use crate::config::reader::{Located, Report};

/// The address; what is none is reported.
pub(super) fn address(report: &Report<'_>, written: Option<Located<String>>) -> Option<Address> {
    let Located { place, value } = written?;
    let address = value.parse();
    if address.is_err() {
        let message = format!("{} is no address of a namespace", report.excerpt(&place));
        report.problem(&place, message, Some(Address::ALLOWED.to_owned()));
    }
    address.ok()
}

/// Reports the addresses that another namespace has already.
pub(super) fn report_repeated(report: &Report<'_>, blocks: &[NamespaceBlock]) {
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
