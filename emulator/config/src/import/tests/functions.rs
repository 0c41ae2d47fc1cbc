//! Tests of functions with lambdas, as Bicep compiles nested loops.

use super::parameters::imported;
use super::*;

/// Returns a template whose only queue is named by an expression.
fn named_by(expression: &str) -> Value {
    json!({"resources": [{
        "type": "Microsoft.ServiceBus/namespaces/queues",
        "name": format!("[concat('n1-name/', {expression})]"),
    }]})
}

fn name(expression: &str) -> String {
    let (namespace, _) = imported(&named_by(expression), &[]);
    namespace["Queues"][0]["Name"].as_str().unwrap().to_owned()
}

fn refusal(expression: &str) -> String {
    let problem = problems(&named_by(expression), &[]);
    problem.replace("resources[0].name: ", "")
}

#[test]
fn nested_loops_of_bicep_are_evaluated() {
    let pairs = "[flatten(map(parameters('topics'), lambda('t', map(lambdaVariables('t').subscriptions, lambda('s', \
                 createObject('topic', lambdaVariables('t').name, 'name', lambdaVariables('s')))))))]";
    let resource = |kind: &str, name: &str, count: &str| {
        json!({
            "copy": {"name": "c", "count": format!("[length({count})]")},
            "type": format!("Microsoft.ServiceBus/namespaces/{kind}"),
            "name": format!("[format({name})]"),
        })
    };
    let topics = json!([{"name": "a", "subscriptions": ["s1", "s2"]}, {"name": "b", "subscriptions": ["s3"]}]);
    let template = json!({
        "parameters": {"topics": {"type": "array", "defaultValue": topics}},
        "variables": {"pairs": pairs},
        "resources": [
            resource("topics", "'n1-name/{0}', parameters('topics')[copyIndex()].name", "parameters('topics')"),
            resource(
                "topics/subscriptions",
                "'n1-name/{0}/{1}', variables('pairs')[copyIndex()].topic, variables('pairs')[copyIndex()].name",
                "variables('pairs')",
            ),
        ],
    });
    let subscription = |name: &str| json!({"Name": name});
    assert_eq!(
        imported(&template, &[]).0["Topics"],
        json!([
            {"Name": "a", "Subscriptions": [subscription("s1"), subscription("s2")]},
            {"Name": "b", "Subscriptions": [subscription("s3")]},
        ])
    );
}

/// Expressions with the name that they make. `$` is the lambda variable `a`, and `%` is `b`.
const NAMES: &str = r#"
    join(map(range(1, 3), lambda('a', mul($, $))), '.') | 1.4.9
    join(map(createArray('x', 'y'), lambda('a', 'b', concat($, %))), '') | x0y1
    join(filter(range(0, 6), lambda('a', equals(mod($, 2), 0))), '') | 024
    join(filter(createArray('x', 'y'), lambda('a', 'b', greater(%, 0))), '') | y
    join(map(createArray('x'), lambda('a', concat(join(map(createArray('y'), lambda('a', $)), ''), $))), '') | yx
    join(flatten(createArray(createArray(1, 2), createArray(), createArray(3))), '') | 123
    join(objectKeys(shallowMerge(createArray(createObject('a', 1), createObject('b', 2)))), '') | ab
    string(shallowMerge(createArray(createObject('a', createObject('x', 1)), createObject('a', 2))).a) | 2"#;

#[test]
fn functions_with_lambdas_have_the_results_of_resource_manager() {
    for line in NAMES.trim().lines() {
        let (expression, expected) = line.trim().split_once(" | ").unwrap();
        let expression = expression.replace('$', "lambdaVariables('a')");
        let expression = expression.replace('%', "lambdaVariables('b')");
        assert_eq!(name(&expression), expected, "{expression}");
    }
}

#[test]
fn invalid_lambdas_are_refused() {
    for (expression, expected) in [
        ("map(range(0, 2))", "map takes two arguments"),
        (
            "map('a', lambda('a', 1))",
            "\"a\" is not allowed in map; allowed: an array",
        ),
        (
            "map(range(0, 2), 1)",
            "a lambda is missing where a function takes one",
        ),
        (
            "map(range(0, 2), lambda())",
            "a lambda is missing where a function takes one",
        ),
        (
            "map(range(0, 2), lambda('a', lambdaVariables('b')))",
            "there is no lambda variable \"b\"",
        ),
        ("lambdaVariables('a')", "there is no lambda variable \"a\""),
        (
            "filter(range(0, 2), lambda('a', 1))",
            "1 is not allowed in filter; allowed: true or false",
        ),
        (
            "flatten(range(0, 1))",
            "0 is not allowed in flatten; allowed: an array",
        ),
        (
            "shallowMerge(range(0, 1))",
            "0 is not allowed in shallowMerge; allowed: an object",
        ),
        (
            "lambda('a', 1)",
            "the function concat is not supported here with a lambda",
        ),
        (
            "sort(range(0, 2), lambda('a', 'b', less(lambdaVariables('a'), lambdaVariables('b'))))",
            "the function sort is not supported here with a lambda",
        ),
    ] {
        assert_eq!(refusal(expression), expected, "{expression}");
    }
}

#[test]
fn a_lambda_that_multiplies_a_value_is_refused() {
    for expression in [
        "map(range(0, 10000), lambda('b', map(range(0, 10000), lambda('a', createObject(padLeft('a', 60000), 1)))))",
        "map(range(0, 10000), lambda('b', map(range(0, 10000), lambda('a', length(string(range(0, 10000)))))))",
    ] {
        let refusal = refusal(&format!("string({expression})"));
        let expected = "the template has more than 32000000 expressions and values to evaluate\n";
        assert!(refusal.starts_with(expected), "{expression}: {refusal}");
    }
}

#[test]
fn a_user_defined_function_is_not_supported() {
    assert_eq!(
        refusal("__bicep.join('a', 'b')"),
        "\"[concat('n1-name/', __bicep.join('a', 'b'))]\" is not an expression: a user-defined function is not supported here"
    );
}
