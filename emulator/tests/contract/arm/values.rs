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
fn a_value_of_any_type_is_shown_as_the_administration_api_writes_it() {
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
fn a_property_without_a_value_is_no_condition() {
    let manager = with_subscription();
    let filter = json!({"correlationFilter": {"properties": {"tier": null}}});
    let body = Some(json!({"properties": filter}));
    let refusal = refused(manager.ask("PUT", &format!("{RULES}/r"), body));
    assert_eq!(refusal, (400, "MessagingGatewayBadRequest".to_owned()));
}
