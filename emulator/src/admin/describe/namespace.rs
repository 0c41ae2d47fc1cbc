//! `/$namespaceinfo`.

use servicebus_broker::Tier;

use super::super::time::Frame;
use super::super::xml::{CONNECT, INSTANCE, Writer};
use crate::namespace::Namespace;

/// Writes what a namespace is.
pub(in crate::admin) fn write_namespace(namespace: &Namespace, frame: Frame, out: &mut Writer) {
    let tier = namespace.config.settings.tier;
    let started_at = frame.ticks(namespace.started_at);
    out.open(
        "NamespaceInfo",
        &[("xmlns", CONNECT), ("xmlns:i", INSTANCE)],
    );
    out.element("CreatedTime", &started_at);
    let sku = match tier {
        Tier::Basic => "Basic",
        Tier::Standard => "Standard",
        Tier::Premium => "Premium",
    };
    out.element("MessagingSKU", sku);
    if tier == Tier::Premium {
        out.element("MessagingUnits", "1");
    }
    out.element("ModifiedTime", &started_at);
    out.element("Name", namespace.name());
    out.element("NamespaceType", "Messaging");
    out.close("NamespaceInfo");
}
