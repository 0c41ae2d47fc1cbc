//! Tests of templates as the portal exports them, as Bicep compiles them, nested, and invalid.

use std::fs;

use serde_json::{Map, json};
use servicebus_broker::filter::{Filter, SqlFilter};

use super::*;
use crate::config::Config;

fn fixture(name: &str) -> String {
    let path = format!(
        "{}/../../fixtures/arm/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    fs::read_to_string(path).unwrap()
}

fn given(parameters: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = parameters.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Compares the imported configuration and its notes with a fixture.
fn assert_imported(name: &str, parameters: &[(&str, &str)]) {
    let imported = import(&fixture(name), &given(parameters)).unwrap();
    Config::parse(&imported.document.to_string()).unwrap();
    let notes: String = imported
        .notes
        .iter()
        .map(|note| format!("// {note}\n"))
        .collect();
    let found = format!("{notes}{:#}\n", imported.document);
    let path = format!(
        "{}/../../fixtures/arm/imported/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    if std::env::var_os("UPDATE_IMPORTED").is_some() {
        fs::write(&path, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(path).unwrap());
}

#[test]
fn a_template_exported_by_the_portal_is_imported() {
    assert_imported("exported", &[]);
}

#[test]
fn a_template_compiled_by_bicep_is_imported() {
    assert_imported("bicep", &[("prefix", "shop")]);
}

#[test]
fn a_template_with_nested_deployments_is_imported() {
    assert_imported("nested", &[("serviceBusNamespaceName", "market")]);
}

#[test]
fn a_jms_subscription_keeps_its_client_and_selector() {
    let properties = json!({
        "isClientAffine": true,
        "clientAffineProperties": {"clientId": "desk", "isShared": true},
    });
    let resource = |kind: &str, name: &str, properties| {
        json!({
            "type": format!("Microsoft.ServiceBus/namespaces{kind}"),
            "name": name,
            "sku": {"name": "Premium"},
            "properties": properties,
        })
    };
    let resources = [
        resource("", "n1-name", json!({})),
        resource("/topics", "n1-name/t", json!({})),
        resource("/topics/subscriptions", "n1-name/t/sub$desk$DS", properties),
        resource(
            "/topics/subscriptions/rules",
            "n1-name/t/sub$desk$DS/Default",
            json!({"sqlFilter": {"sqlExpression": "NOT color = 1"}}),
        ),
    ];
    let template = json!({"resources": resources}).to_string();
    let imported = import(&template, &given(&[])).unwrap();
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    let config = Config::parse(&imported.document.to_string()).unwrap();
    let topics = config.namespaces[0].topics.iter();
    let mut subscriptions = topics.flat_map(|topic| &topic.subscriptions);
    let subscription = subscriptions.next().unwrap();
    let client = subscription.description.client.as_ref().unwrap();
    assert_eq!(
        (&*client.client_id, client.is_durable, client.is_shared),
        ("desk", true, true)
    );
    let selector = SqlFilter::selector("NOT color = 1").unwrap();
    assert_eq!(subscription.rules[0].filter, Filter::Sql(selector));
    assert_eq!(client.selector.as_deref(), Some("NOT color = 1"));
}

#[test]
fn parameter_values_are_parsed_by_their_declared_type() {
    let parameters = [
        ("prefix", "shop"),
        ("withTopic", "false"),
        ("maxDeliveryCount", "3"),
        ("queues", r#"[{"name": "one", "sessions": true}]"#),
    ];
    let imported = import(&fixture("bicep"), &given(&parameters)).unwrap();
    let namespace = &imported.document["UserConfig"]["Namespaces"][0];
    assert_eq!(namespace["Topics"], json!([]));
    let queue = json!({"Name": "one", "Properties": {
        "DeadLetteringOnMessageExpiration": true, "MaxDeliveryCount": 3, "RequiresSession": true,
    }});
    assert_eq!(namespace["Queues"], json!([queue]));
}

/// Returns the problems of a template, one per line.
fn problems(template: &Value, parameters: &[(&str, &str)]) -> String {
    let imported = import(&template.to_string(), &given(parameters));
    imported.unwrap_err().to_string()
}

#[test]
fn an_unreadable_value_is_reported_with_its_path() {
    let queue = |name: &str, properties: Value| {
        json!({
            "parameters": {"a": {"type": "string", "defaultValue": "[variables('b')]"}, "n": {"type": "int"}},
            "variables": {"b": "[parameters('a')]"},
            "resources": [{"type": "Microsoft.ServiceBus/namespaces/queues", "name": name, "properties": properties}],
        })
    };
    for (name, properties, expected) in [
        (
            "[concat('x', '/', parameters('a'))]",
            json!({}),
            "resources[0].name: parameters, variables and expressions refer to one another deeper than 100, or go round",
        ),
        (
            "x/q",
            json!({"maxDeliveryCount": "[parameters('n')]"}),
            "resources[0].properties: the parameter n has no default and needs a value",
        ),
        (
            "x/q",
            json!({"lockDuration": "[reference('x').lockDuration]"}),
            "resources[0].properties: only a deployment could evaluate the function reference",
        ),
        (
            "x/q",
            json!({"lockDuration": "PT1H"}),
            "resources[0].properties.lockDuration: PT1H is not allowed; allowed: 5 s (PT5S) to 5 min (PT5M)",
        ),
        (
            "q",
            json!({}),
            "resources[0].name: \"q\" is not a name of a resource of the type namespaces/queues: each part of the type has one",
        ),
        (
            "[concat('x', '/q']",
            json!({}),
            "resources[0].name: \"[concat('x', '/q']\" is not an expression: it ends where , or ) should be",
        ),
        (
            "[concat('x/q', copyIndex())]",
            json!({}),
            "resources[0].name: copyIndex stands outside of a copy",
        ),
    ] {
        assert_eq!(problems(&queue(name, properties), &[]), expected);
    }
    assert_eq!(
        problems(&queue("x/q", json!({})), &[("z", "1")]),
        "parameters: there is no parameter \"z\""
    );
    assert_eq!(
        problems(&queue("x/q", json!({})), &[("n", "many")]),
        "parameters.n: \"many\" is not a value of its type int"
    );
    assert_eq!(
        problems(&json!({"resources": []}), &[]),
        "resources: the template has no resource of Service Bus"
    );
}

/// Returns a template of one rule with these properties.
fn with_rule(properties: Value) -> Value {
    let resource = |kind: &str, name: &str, properties| {
        json!({
            "type": format!("Microsoft.ServiceBus/namespaces{kind}"),
            "name": name,
            "properties": properties,
        })
    };
    json!({"resources": [
        resource("/topics", "n1-name/t", json!({})),
        resource("/topics/subscriptions", "n1-name/t/s", json!({})),
        resource("/topics/subscriptions/rules", "n1-name/t/s/r", properties),
    ]})
}

#[test]
fn a_malformed_rule_is_refused_instead_of_selecting_every_message() {
    for (properties, expected) in [
        (
            json!({"sqlFilter": "1=0"}),
            ".sqlFilter: \"1=0\" is not allowed; allowed: a JSON object",
        ),
        (
            json!({"sqlFilter": {"sqlExpression": 5}}),
            ".sqlFilter.sqlExpression: 5 is not allowed; allowed: a text",
        ),
        (
            json!({"sqlFilter": {"sqlExpresion": "1=0"}}),
            ".sqlFilter.sqlExpression: it is missing or empty",
        ),
        (
            json!({"sqlFilter": {"sqlExpression": ""}}),
            ".sqlFilter.sqlExpression: it is missing or empty",
        ),
        (
            json!({"sqlFilter": {}, "action": ["SET a = 1"]}),
            ".action: [\"SET a = 1\"] is not allowed; allowed: a JSON object",
        ),
        (
            json!({"action": {"expression": "SET a = 1"}}),
            ".action.sqlExpression: it is missing or empty",
        ),
        (
            json!({"filterType": 1, "correlationFilter": {"label": "a"}}),
            ".filterType: 1 is not allowed; allowed: SqlFilter, CorrelationFilter",
        ),
        (
            json!({"filterType": "SqlFilter", "correlationFilter": {"label": "a"}}),
            ".filterType: it is SqlFilter, but the filter is in correlationFilter",
        ),
        (
            json!({"correlationFilter": {"label": ["a"]}}),
            ".correlationFilter.label: [\"a\"] is not allowed; allowed: a text, a number, true or false",
        ),
        (
            json!({"correlationFilter": {"label": "a", "properties": "b"}}),
            ".correlationFilter.properties: \"b\" is not allowed; allowed: a JSON object",
        ),
        (json!(7), ": 7 is not allowed; allowed: a JSON object"),
    ] {
        let found = problems(&with_rule(properties), &[]);
        assert_eq!(found, format!("resources[2].properties{expected}"));
    }
}

#[test]
fn unknown_members_of_a_rule_are_noted_and_numbers_are_texts() {
    let action =
        json!({"sqlExpression": "SET a = 1", "requiresPreprocessing": false, "parameters": {}});
    let template = with_rule(json!({
        "filterType": "CorrelationFilter",
        "correlationFilter": {"label": 7, "sessionId": true, "subject": "a", "requiresPreprocessing": false},
        "sqlFilter": {},
        "action": action,
        "filter": "1=1",
    }));
    let imported = import(&template.to_string(), &given(&[])).unwrap();
    let mut noted: Vec<&str> = imported
        .notes
        .iter()
        .filter_map(|note| note.path.strip_prefix("resources[2].properties."))
        .collect();
    noted.sort_unstable();
    assert_eq!(
        noted,
        ["action.parameters", "correlationFilter.subject", "filter"]
    );
    let config = Config::parse(&imported.document.to_string()).unwrap();
    let rule = &config.namespaces[0].topics[0].subscriptions[0].rules[0];
    let Filter::Correlation(filter) = &rule.filter else {
        panic!("{:?}", rule.filter);
    };
    let filter = filter.description();
    assert_eq!(filter.label.as_deref(), Some("7"));
    assert_eq!(filter.session_id.as_deref(), Some("true"));
}

#[test]
fn a_feature_that_the_emulator_does_not_support_is_left_out_with_a_note() {
    let mut template = with_rule(json!({"sqlFilter": {"sqlExpression": "a = 1"}}));
    let topic = &mut template["resources"][0]["properties"];
    *topic = json!({"filteringMessagesBeforePublishing": true, "isAnonymousAccessible": false});
    let imported = import(&template.to_string(), &given(&[])).unwrap();
    let note = imported.notes[1].to_string();
    assert_eq!(
        note,
        "resources[0].properties.filteringMessagesBeforePublishing: the emulator does not support it: it is left out"
    );
}

#[test]
fn a_text_that_is_not_a_template_is_refused() {
    let deep = "[".repeat(100_000);
    for (text, expected) in [
        ("{", "the template is not JSON"),
        ("[]", "the template is not a JSON object"),
        (deep.as_str(), "the template is not JSON"),
    ] {
        let problem = import(text, &BTreeMap::new()).unwrap_err().to_string();
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn an_expression_with_a_long_chain_of_members_is_refused() {
    let name = format!("[resourceGroup(){}]", ".a".repeat(100_000));
    let queue = json!({"type": "Microsoft.ServiceBus/namespaces", "name": name});
    let problem = problems(&json!({"resources": [queue]}), &[]);
    assert!(problem.ends_with("it nests deeper than 64"));
}

#[test]
fn an_expression_with_an_excessive_result_is_refused() {
    let mut variables = Map::new();
    variables.insert("v0".to_owned(), "0123456789".into());
    for index in 1..16 {
        let before = format!("variables('v{}')", index - 1);
        variables.insert(
            format!("v{index}"),
            format!("[concat({before}, {before})]").into(),
        );
    }
    let template = json!({
        "variables": variables,
        "resources": [{"type": "Microsoft.ServiceBus/namespaces", "name": "[variables('v15')]"}],
    });
    let problem = problems(&template, &[]);
    assert!(problem.contains("more than"), "{problem}");
}

/// Expressions that Resource Manager rejects as the name of a queue, with the error and what is allowed.
const REFUSED: &str = r#"
    string(div(1,0)) | 0 is not allowed in div | a divisor other than 0
    string(mod(1,0)) | 0 is not allowed in mod | a divisor other than 0
    first(createArray()) | null is not a name | a string
    string(first(createArray())) | null is not allowed in string | a value
    concat('q', null()) | null is not allowed in concat | a string, a number, true or false
    string(add(9223372036854775807,1)) | add(9223372036854775807, 1) is not allowed | a result of 64 bits
    string(sub('a',1)) | "a" is not allowed in sub | a whole number of 64 bits
    substring('abc',1,10) | 10 is not allowed in substring | 0 to 2
    substring('abc',4) | 4 is not allowed in substring | 0 to 3
    string(bool('x')) | "x" is not allowed in bool | true, false or a whole number
    string(not('x')) | "x" is not allowed in not | true or false
    string(and(true(),1)) | 1 is not allowed in and | true or false
    if('x','a','b') | "x" is not allowed in if | true or false
    string(greater('a',1)) | 1 is not allowed in greater | a string
    string(less(1,'a')) | "a" is not allowed in less | a whole number of 64 bits
    toLower(1) | 1 is not allowed in toLower | a string
    toLower() | 0 arguments are not allowed in toLower | 1
    string(int('1.5')) | "1.5" is not allowed in int | a whole number of 64 bits
    string(max('a')) | "a" is not allowed in max | whole numbers of 64 bits, or an array of them
    string(range(0,10001)) | 10001 is not allowed in range | 0 to 10000
    string(length(1)) | 1 is not allowed in length | a string, an array or an object
    join('ab','') | "ab" is not allowed in join | an array
    replace('ab','','x') | "" is not allowed in replace | a string that is not empty
    format('{0:X2}', 1) | {0:X2} is not allowed in format | a whole number with D, as in {0:D2}
    json('{') | "{" is not allowed in json | a text that is JSON
    string(items(1)) | 1 is not allowed in items | an object
    string(union(createObject(),1)) | 1 is not allowed in union | an object"#;

#[test]
fn invalid_arguments_of_a_template_function_are_refused() {
    for line in REFUSED.trim().lines() {
        let [expression, found, allowed] = line.trim().split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let resource = json!({
            "type": "Microsoft.ServiceBus/namespaces/queues",
            "name": format!("[{expression}]"),
        });
        let expected = format!("resources[0].name: {found}; allowed: {allowed}");
        assert_eq!(
            problems(&json!({"resources": [resource]}), &[]),
            expected,
            "{expression}"
        );
    }
    let conditional = json!({
        "type": "Microsoft.ServiceBus/namespaces/queues",
        "name": "n1-name/q",
        "condition": "perhaps",
    });
    assert_eq!(
        problems(&json!({"resources": [conditional]}), &[]),
        "resources[0].condition: \"perhaps\" is not allowed; allowed: true or false"
    );
}

#[test]
fn template_functions_have_the_results_of_resource_manager() {
    for (expression, expected) in [
        ("concat('x', last(''), first(''), 1, true())", "x1True"),
        ("concat(first('abc'), last('abc'))", "ac"),
        ("string(last(concat(createArray(1), createArray(2))))", "2"),
        ("substring('abc', 1)", "bc"),
        ("substring('abc', 3, 0)", ""),
        ("string(length(substring('😀c', 0, 2)))", "2"),
        ("join(split('a;b,c', createArray(';', ',')), '')", "abc"),
        ("string(bool('true'))", "True"),
        ("string(bool(0))", "False"),
        ("string(min(createArray(3, 2)))", "2"),
        ("string(less('A', 'a'))", "True"),
        ("format('{0}{1}', null(), 1)", "1"),
        ("replace('abab', 'a', 'c')", "cbcb"),
        ("string(mod(-7, 3))", "-1"),
        (
            "format('{0:D2}{1,3}{1,-2}{2:D3}{3:D2}', 1, 'a', -5, 'b')",
            "01  aa -005b",
        ),
        (
            "string(and(lessOrEquals(1, 1), greaterOrEquals('b', 'a')))",
            "True",
        ),
        (
            "string(tryGet(createObject('a', createArray(7)), 'A', 0))",
            "7",
        ),
        (
            "coalesce(tryGet(createObject('a', 1), 'b'), tryGet(null(), 'c'), 'd')",
            "d",
        ),
        (
            "concat(take('abc', 2), skip('abc', 2), take('a', -1), skip('a', 5))",
            "abc",
        ),
        (
            "string(concat(take(range(0, 3), 1), skip(range(0, 3), 9)))",
            "[0]",
        ),
        ("concat(padLeft(7, 3, '0'), padLeft('ab', 1))", "007ab"),
        (
            "string(union(createArray(1, 2), createArray(2, 3)))",
            "[1,2,3]",
        ),
        (
            r#"string(union(json('{"a":{"b":1},"c":[1]}'), json('{"a":{"d":2},"c":[2]}')))"#,
            r#"{"a":{"b":1,"d":2},"c":[2]}"#,
        ),
        ("string(array(array('a')))", r#"["a"]"#),
        (
            "string(items(createObject('b', 1, 'a', 2))[0])",
            r#"{"key":"a","value":2}"#,
        ),
        (
            "string(createArray(indexOf('aBC', 'bc'), indexOf('a', 'x'), indexOf(range(5, 2), 6)))",
            "[1,-1,1]",
        ),
    ] {
        let label = format!("[concat('q', {expression})]");
        let template = with_rule(json!({"correlationFilter": {"label": label}}));
        let imported = import(&template.to_string(), &given(&[])).unwrap();
        let rule = "/UserConfig/Namespaces/0/Topics/0/Subscriptions/0/Rules/0/Properties";
        let filter = &imported.document.pointer(rule).unwrap()["CorrelationFilter"];
        assert_eq!(filter["Label"], format!("q{expected}"), "{expression}");
    }
}

mod existing;
mod functions;
mod parameters;

proptest::proptest! {
    #[test]
    fn random_expressions_do_not_panic(body in "[a-z'(),.\\[\\]0-9é ]{0,40}") {
        let template = json!({
            "resources": [{"type": "Microsoft.ServiceBus/namespaces/queues", "name": format!("[{body}]")}],
        });
        let _ = import(&template.to_string(), &BTreeMap::new());
    }
}
