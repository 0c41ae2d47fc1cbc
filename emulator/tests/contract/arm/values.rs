//! Values of correlation filters, which are strings in Azure Resource Manager and have types elsewhere.

use serde_json::json;

use super::{Manager, refused};
use crate::support::*;

const RULES: &str = "/topics/t/subscriptions/s/rules";

fn with_subscription() -> Manager {
    let manager = Manager::with_queues(&["q"]);
    manager.put("/topics/t", json!({}));
    manager.put("/topics/t/subscriptions/s", json!({}));
    manager
}

#[test]
fn correlation_properties_of_any_type_are_shown_by_arm() {
    let manager = with_subscription();
    let value = |key: &str, kind: &str, text: &str| {
        format!(
            "<KeyValueOfstringanyType><Key>{key}</Key><Value i:type=\"x:{kind}\" \
             xmlns:x=\"http://www.w3.org/2001/XMLSchema\">{text}</Value></KeyValueOfstringanyType>"
        )
    };
    let typed = rule(&format!(
        "<Filter i:type=\"CorrelationFilter\"><Properties>{}{}{}</Properties></Filter>",
        value("at", "dateTime", "2020-01-01T00:00:00Z"),
        value("span", "duration", "PT1M30S"),
        value("most", "double", "INF")
    ));
    let admin = manager.0.admin();
    admin.create("/t/Subscriptions/s/Rules/typed", &typed);
    let shown = manager.get(&format!("{RULES}/typed"));
    assert_eq!(
        shown["properties"]["correlationFilter"]["properties"],
        json!({"at": "2020-01-01T00:00:00Z", "span": "PT1M30S", "most": "INF"})
    );
}

#[test]
fn a_correlation_property_with_a_null_value_is_refused() {
    let manager = with_subscription();
    let filter = json!({"correlationFilter": {"properties": {"tier": null}}});
    let body = Some(json!({"properties": filter}));
    let refusal = refused(manager.ask("PUT", &format!("{RULES}/r"), body));
    assert_eq!(refusal, (400, "MessagingGatewayBadRequest".to_owned()));
}
