//! Tests of the values of parameters, of copies in properties, and of names that a configuration writes differently.

use super::*;

/// Returns the first namespace of the imported configuration, and the notes.
pub(super) fn imported(template: &Value, parameters: &[(&str, &str)]) -> (Value, Vec<String>) {
    let imported = import(&template.to_string(), &given(parameters)).unwrap();
    Config::parse(&imported.document.to_string()).unwrap();
    let notes = imported.notes.iter().map(ToString::to_string).collect();
    (
        imported.document["UserConfig"]["Namespaces"][0].clone(),
        notes,
    )
}

/// Returns a template with a queue in a deployment that has this value for its parameter `a`.
fn nested(value: Value, parameter: Value) -> Value {
    let queue = json!({
        "type": "Microsoft.ServiceBus/namespaces/queues",
        "name": "[concat('n1-name/', parameters('a'))]",
    });
    let inner = json!({"parameters": {"a": parameter}, "resources": [queue]});
    let properties = json!({
        "expressionEvaluationOptions": {"scope": "inner"},
        "parameters": {"a": value},
        "template": inner,
    });
    let deployment = json!({
        "type": "Microsoft.Resources/deployments",
        "name": "d",
        "properties": properties,
    });
    json!({"resources": [deployment]})
}

#[test]
fn a_parameter_of_a_deployment_that_cannot_be_evaluated_is_an_error_where_it_is_used() {
    for (value, expected) in [
        (
            json!({"value": "[reference('x').outputs.a.value]"}),
            "only a deployment could evaluate the function reference",
        ),
        (
            json!({"value": "[cidrHost('a', 1)]"}),
            "the function cidrHost is not supported here",
        ),
        (
            json!({"reference": {"secretName": "s"}}),
            "only a deployment could read it",
        ),
    ] {
        let template = nested(value, json!({"type": "string", "defaultValue": "other"}));
        assert_eq!(
            problems(&template, &[]),
            format!(
                "resources[0].properties.template.resources[0].name: the value of the parameter a: {expected}"
            )
        );
    }
}

#[test]
fn a_null_for_a_parameter_of_a_deployment_is_no_value() {
    let template = nested(
        json!({"value": null}),
        json!({"type": "string", "defaultValue": "other"}),
    );
    assert_eq!(imported(&template, &[]).0["Queues"][0]["Name"], "other");
}

#[test]
fn a_substitute_in_a_parameter_of_a_deployment_is_noted() {
    let template = nested(
        json!({"value": "[uniqueString('x')]"}),
        json!({"type": "string"}),
    );
    let notes = imported(&template, &[]).1;
    assert!(
        notes[0].contains("uniqueString is evaluated when a template is deployed"),
        "{notes:?}"
    );
}

#[test]
fn parameters_may_be_nullable_and_have_the_type_of_a_definition() {
    let queue = json!({
        "type": "Microsoft.ServiceBus/namespaces/queues",
        "name": "n1-name/q",
        "condition": "[parameters('deploy')]",
        "properties": {
            "forwardTo": "[parameters('target')]",
            "maxDeliveryCount": "[coalesce(parameters('count'), 7)]",
        },
    });
    let namespace = json!({
        "type": "Microsoft.ServiceBus/namespaces",
        "name": "n1-name",
        "sku": {"name": "[parameters('sku')]"},
    });
    let template = json!({
        "definitions": {
            "tier": {"type": "string", "allowedValues": ["Standard", "Premium"]},
            "count": {"type": "int", "nullable": true},
        },
        "parameters": {
            "target": {"type": "string", "nullable": true},
            "count": {"$ref": "#/definitions/count"},
            "sku": {"$ref": "#/definitions/tier", "defaultValue": "standard"},
            "deploy": {"type": "bool", "defaultValue": false},
        },
        "resources": {"n": namespace, "q": queue},
    });
    let (namespace, _) = imported(&template, &[("deploy", "True")]);
    let queue = json!({"Name": "q", "Properties": {"MaxDeliveryCount": 7}});
    assert_eq!(namespace["Queues"], json!([queue]));
    let (namespace, _) = imported(&template, &[("deploy", "true"), ("count", "3")]);
    assert_eq!(namespace["Queues"][0]["Properties"]["MaxDeliveryCount"], 3);
    assert_eq!(
        problems(&template, &[("sku", "Basic")]),
        r#"resources.n.sku: "Basic" is not allowed for the parameter sku; allowed: ["Standard","Premium"]"#
    );
}

#[test]
fn copies_in_properties_and_variables_are_evaluated() {
    let copy = |name: &str, input: &str| json!({"name": name, "count": 2, "input": input});
    let template = json!({
        "variables": {"o": {"copy": [copy("names", "[concat('k', copyIndex('names', 1))]")]}},
        "resources": [{
            "type": "Microsoft.ServiceBus/namespaces/AuthorizationRules",
            "name": "[concat('n1-name/', variables('o').names[1])]",
            "properties": {"copy": [copy("rights", "[createArray('Send', 'Listen')[copyIndex('rights')]]")]},
        }],
    });
    let keys = &imported(&template, &[]).0["Emulator"]["Keys"];
    assert_eq!(keys[1]["Name"], "k2");
    assert_eq!(keys[1]["Claims"], json!(["Send", "Listen"]));
}

#[test]
fn a_tilde_in_the_name_of_a_queue_or_topic_is_a_slash() {
    let resource = |kind: &str, name: &str, properties: Value| {
        json!({
            "type": format!("Microsoft.ServiceBus/namespaces/{kind}"),
            "name": format!("n1-name/{name}"),
            "properties": properties,
        })
    };
    let template = json!({"resources": [
        resource("queues", "a~b", json!({})),
        resource("topics", "c~d", json!({})),
        resource("topics/subscriptions", "c~d/s", json!({"forwardTo": "a/b"})),
        resource("topics/subscriptions/rules", "c~d/s/r", json!({"sqlFilter": {"sqlExpression": "1=1"}})),
    ]});
    let (namespace, _) = imported(&template, &[]);
    assert_eq!(namespace["Queues"][0]["Name"], "a/b");
    assert_eq!(namespace["Topics"][0]["Name"], "c/d");
    let subscription = &namespace["Topics"][0]["Subscriptions"][0];
    assert_eq!(subscription["Rules"][0]["Name"], "r");
}

#[test]
fn a_key_with_the_name_of_another_namespaces_key_is_renamed_with_a_note() {
    let key = |name: &str| {
        json!({
            "type": "Microsoft.ServiceBus/namespaces/AuthorizationRules",
            "name": name,
            "properties": {"rights": ["Send"]},
        })
    };
    let template = json!({"resources": [key("n1-name/app"), key("n2-name/app")]});
    let imported = import(&template.to_string(), &given(&[])).unwrap();
    let config = Config::parse(&imported.document.to_string()).unwrap();
    let keys = config.namespaces.iter().flat_map(|own| &own.keys);
    let names: Vec<&str> = keys.map(|key| &*key.name).collect();
    assert_eq!(
        names,
        [
            "RootManageSharedAccessKey",
            "app",
            "RootManageSharedAccessKey-n2-name",
            "app-n2-name"
        ]
    );
    let note = imported.notes.last().unwrap().to_string();
    assert_eq!(
        note,
        r#"resources: the key "app" of the namespace "n2-name" is named "app-n2-name": key names are unique among namespaces"#
    );
}

#[test]
fn a_resource_that_a_configuration_cannot_have_need_not_be_evaluated() {
    let unknown = "[reference('network').outputs.ids.value]";
    for (name, value) in [
        ("condition", json!(unknown)),
        ("properties", json!({"virtualNetworkRules": unknown})),
        ("copy", json!({"name": "c", "count": unknown})),
    ] {
        let mut rules = json!({
            "type": "Microsoft.ServiceBus/namespaces/networkRuleSets",
            "name": "n1-name/default",
        });
        rules[name] = value;
        let namespace = json!({"type": "Microsoft.ServiceBus/namespaces", "name": "n1-name"});
        let (_, notes) = imported(&json!({"resources": [namespace, rules]}), &[]);
        let left_out = "microsoft.servicebus/namespaces/networkrulesets is left out: only a deployment could evaluate";
        assert!(notes[0].contains(left_out), "{notes:?}");
    }
}

#[test]
fn a_tilde_stands_for_a_slash_in_targets_too() {
    let queue = |name: &str, properties: Value| json!({"type": "Microsoft.ServiceBus/namespaces/queues", "name": name, "properties": properties});
    let template = json!({"resources": [
        {"type": "Microsoft.ServiceBus/namespaces", "name": "n1-name"},
        queue("n1-name/in~b", json!({})),
        queue("n1-name/q", json!({"forwardTo": "in~b"})),
    ]});
    let (namespace, _) = imported(&template, &[]);
    assert_eq!(namespace["Queues"][1]["Properties"]["ForwardTo"], "in/b");
}

#[test]
fn a_value_outside_the_limits_of_its_parameter_is_refused() {
    let template = |limits: Value, default: Value| {
        let mut parameter = json!({"defaultValue": default});
        let members = limits.as_object().unwrap().clone();
        parameter.as_object_mut().unwrap().extend(members);
        json!({
            "definitions": {"few": {"type": "int", "minValue": 1, "maxValue": 5}},
            "parameters": {"n": parameter},
            "resources": [{
                "type": "Microsoft.ServiceBus/namespaces/queues",
                "name": "[concat('n1-name/q', string(parameters('n')))]",
            }],
        })
    };
    let lengths = json!({"type": "string", "minLength": 2, "maxLength": 3});
    for (limits, refused, allowed) in [
        (json!({"$ref": "#/definitions/few"}), json!(0), "at least 1"),
        (json!({"$ref": "#/definitions/few"}), json!(6), "at most 5"),
        (
            json!({"type": "int", "minValue": 1}),
            json!(0),
            "at least 1",
        ),
        (json!({"type": "int", "maxValue": 5}), json!(6), "at most 5"),
        (lengths.clone(), json!("a"), "a length of at least 2"),
        (lengths.clone(), json!("a€😀"), "a length of at most 3"),
        (
            json!({"type": "array", "maxLength": 1}),
            json!([1, 2]),
            "a length of at most 1",
        ),
    ] {
        let expected = format!(
            "resources[0].name: {refused} is not allowed for the parameter n; allowed: {allowed}"
        );
        assert_eq!(problems(&template(limits, refused), &[]), expected);
    }
    let id = json!({"type": "string", "minLength": 36});
    imported(&template(id, json!("[newGuid()]")), &[]);
    let few = json!({"$ref": "#/definitions/few"});
    for value in [1, 5] {
        imported(&template(few.clone(), json!(value)), &[]);
    }
    imported(&template(lengths.clone(), json!("ab")), &[]);
    imported(&template(lengths, json!("abc")), &[]);
    assert!(
        problems(&template(few, json!(1)), &[("n", "9")])
            .contains("9 is not allowed for the parameter n")
    );
}
