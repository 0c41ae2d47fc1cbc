//! Rules, with every form of filters and actions.

use serde_amqp::Value;

use crate::support::*;

const RULES: &str = "/t/Subscriptions/s/Rules";
const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";

fn value(name: &str, type_: &str, text: &str) -> String {
    format!(
        "<KeyValueOfstringanyType><Key>{name}</Key><Value i:type=\"l28:{type_}\" xmlns:l28=\"{SCHEMA}\">{text}</Value>\
         </KeyValueOfstringanyType>"
    )
}

fn shown_value(name: &str, type_: &str, text: &str) -> String {
    let space = match type_ {
        "duration" => "http://schemas.microsoft.com/2003/10/Serialization/",
        _ => SCHEMA,
    };
    format!(
        "<KeyValueOfstringanyType><Key>{name}</Key><Value i:type=\"d6p1:{type_}\" xmlns:d6p1=\"{space}\">{text}\
         </Value></KeyValueOfstringanyType>"
    )
}

/// What stands between the description's root and its creation time.
fn described(reply: &AtomReply) -> Vec<&str> {
    let descriptions = reply.body.split("<RuleDescription ").skip(1);
    descriptions
        .map(|text| {
            let (_, text) = text.split_once('>').expect("a root");
            text.split("<CreatedAt>").next().expect("a creation time")
        })
        .collect()
}

const NO_ACTION: &str = "<Action i:type=\"EmptyRuleAction\"/>";
const LEVEL: &str = "<CompatibilityLevel>20</CompatibilityLevel>";

/// The name of a rule, what the client sends, and what the API returns for it alone.
type Form = (&'static str, String, String);

fn constants() -> [Form; 2] {
    let shown = |name: &str, expression: &str| {
        format!(
            "<Filter i:type=\"{name}\"><SqlExpression>{expression}</SqlExpression>{LEVEL}</Filter>{NO_ACTION}"
        )
    };
    let given =
        "<Filter i:type=\"TrueFilter\"><SqlExpression>1=1</SqlExpression><Parameters/></Filter>";
    let other = format!("<Filter i:type=\"FalseFilter\"/>{NO_ACTION}");
    [
        ("true", given.to_owned(), shown("TrueFilter", "1=1")),
        ("false", other, shown("FalseFilter", "1=0")),
    ]
}

fn expressions() -> [Form; 2] {
    let shown = |filter: &str, p: &str, action: &str, q: &str| {
        format!(
            "<Filter i:type=\"SqlFilter\"><SqlExpression>{filter}</SqlExpression>{LEVEL}{p}</Filter>\
             <Action i:type=\"SqlRuleAction\"><SqlExpression>{action}</SqlExpression>{LEVEL}{q}</Action>"
        )
    };
    let plain = format!(
        "{}<Action i:type=\"SqlRuleAction\"><SqlExpression>SET a = 1</SqlExpression></Action>",
        sql_filter("a &lt; 1")
    );
    // In another order, and with ignored elements.
    let with_parameters = format!(
        "<Action i:type=\"SqlRuleAction\"><Parameters>{}</Parameters><SqlExpression>SET a = @q</SqlExpression></Action>\
         <Filter i:type=\"SqlFilter\"><RequiresPreprocessing>true</RequiresPreprocessing><Parameters>{}</Parameters>\
         <SqlExpression>a = @p</SqlExpression></Filter>",
        value("@q", "int", "5"),
        value("@p", "int", "5")
    );
    let parameters =
        |name: &str| format!("<Parameters>{}</Parameters>", shown_value(name, "int", "5"));
    let none = "<Parameters/>";
    [
        ("sql", plain, shown("a &lt; 1", none, "SET a = 1", none)),
        (
            "parameters",
            with_parameters,
            shown("a = @p", &parameters("@p"), "SET a = @q", &parameters("@q")),
        ),
    ]
}

fn correlation() -> Form {
    let typed = [
        ("s", "string", "x"),
        ("i", "int", "5"),
        ("l", "long", "5000000000"),
        ("b", "boolean", "true"),
        ("f", "double", "1.5"),
        ("d", "dateTime", "2021-07-05T11:12:13Z"),
        ("t", "duration", "PT1H"),
    ];
    let system = "<CorrelationId>c</CorrelationId><MessageId>m</MessageId><To>t</To><ReplyTo>r</ReplyTo>\
                  <Label>l &lt;</Label><SessionId>i</SessionId><ReplyToSessionId>ri</ReplyToSessionId>\
                  <ContentType>ct</ContentType>";
    let filter = |properties: String| {
        format!(
            "<Filter i:type=\"CorrelationFilter\">{system}<Properties>{properties}</Properties></Filter>"
        )
    };
    let given = typed
        .iter()
        .map(|(name, type_, text)| value(name, type_, text));
    let shown = typed
        .iter()
        .map(|(name, type_, text)| shown_value(name, type_, text));
    let shown = filter(shown.collect()) + NO_ACTION;
    ("correlation", filter(given.collect()), shown)
}

/// An empty `Properties` is more than azure-service-bus-go can read.
fn label() -> Form {
    let filter = "<Filter i:type=\"CorrelationFilter\"><Label>l</Label></Filter>";
    ("label", filter.to_owned(), filter.to_owned() + NO_ACTION)
}

#[test]
fn every_form_of_a_rule_is_returned_as_given() {
    let (_bus, admin) = Bus::administered();
    let forms: Vec<Form> = constants()
        .into_iter()
        .chain(expressions())
        .chain([correlation(), label()])
        .collect();
    for (name, given, shown) in &forms {
        let path = format!("{RULES}/{name}");
        let made = admin.put(&path, &rule(given)).expect(201);
        assert_eq!(described(&made), [shown], "{name}");
        assert_eq!(made.value("id"), format!("https://{HOST}{path}"));
        let read = admin.get(&path).expect(200);
        assert_eq!(described(&read), [shown], "{name}");
        assert_eq!((read.value("title"), read.value("Name")), (*name, *name));
        let digits = "2021-10-01T00:06:46.0000000Z".len();
        assert_eq!(read.value("CreatedAt").len(), digits);
        assert_eq!(read.value("id"), format!("sb://{HOST}{path}"));
    }
    let listed = admin.get(RULES).expect(200);
    let all = described(&listed);
    for (name, _, shown) in &forms {
        let shown = shown.replace("d6p1", "d5p1");
        assert!(all.contains(&shown.as_str()), "{name}: {all:?}");
    }
}

#[test]
fn an_updated_rule_replaces_the_rule_of_that_name() {
    let (bus, admin) = Bus::administered();
    let path = format!("{RULES}/%24default");
    let before = admin.get(&path).expect(200);
    bus.http.advance(10.0);
    // An advance moves the client's view of the past, so that only a change sets it to now.
    let kept = admin.get(&path).expect(200);
    let changed = admin.change(&path, &rule(&sql_filter("a = 1"))).expect(200);
    assert_eq!(
        changed.values(["title", "SqlExpression"]),
        ["$Default", "a = 1"]
    );
    assert!(kept.value("CreatedAt") < changed.value("CreatedAt"));
    assert!(kept.value("CreatedAt") <= before.value("CreatedAt"));
    // An invalid rule changes nothing.
    admin.change(&path, &rule(&sql_filter("a ="))).refusal(400);
    assert_eq!(admin.get(&path).expect(200).value("SqlExpression"), "a = 1");
    admin.delete(&path).expect(200);
    assert_eq!(admin.get(RULES).expect(200).texts("Name"), [""; 0]);
    admin.create(&path, &rule("<Filter i:type=\"TrueFilter\"/>"));
}

#[test]
fn administered_rules_apply_at_once_and_are_listed_over_amqp() {
    let (bus, admin) = Bus::administered();
    let cheap = format!("{RULES}/cheap");
    let default = format!("{RULES}/$Default");
    let (mut peer, sender) = bus.sender("t");
    let send = |peer: &mut Peer, price: i32| {
        let message = Message::new("m").application("price", Value::Int(price));
        peer.send(&sender, &message);
    };
    admin.create(&cheap, &rule(&sql_filter("price &lt; 10")));
    admin.delete(&default).expect(200);
    send(&mut peer, 5);
    send(&mut peer, 50);
    assert_eq!(bus.http.held("t/Subscriptions/s").0, 1);
    admin.update(&cheap, &rule(&sql_filter("price &gt; 10")));
    send(&mut peer, 50);
    send(&mut peer, 5);
    assert_eq!(bus.http.held("t/Subscriptions/s").0, 2);
    let rules = bus.http.get("~/subscriptions/t/Subscriptions/s").ok();
    assert_eq!(
        rules["rules"][0]["Properties"]["SqlFilter"]["SqlExpression"],
        "price > 10"
    );
}

#[test]
fn a_rule_request_without_a_name_in_its_path_is_refused() {
    let (_bus, admin) = Bus::administered();
    let body = rule(&format!("{}<Name>named</Name>", sql_filter("a = 1")));
    let before = admin.get(RULES).expect(200).texts("title").len();
    for path in [RULES.to_owned(), format!("{RULES}/")] {
        for reply in [admin.put(&path, &body), admin.change(&path, &body)] {
            let text = reply.refusal(400);
            assert_starts_with(text, "The specified HTTP verb (PUT) is not valid");
        }
    }
    assert_eq!(admin.get(RULES).expect(200).texts("title").len(), before);
    let other = admin.put(&format!("{RULES}/other"), &body).expect(201);
    assert_eq!(other.value("Name"), "other", "the path wins");
}

#[test]
fn an_invalid_value_of_a_rule_is_refused() {
    let (_bus, admin) = Bus::administered();
    let with = |parameter: String| {
        rule(&format!(
            "<Filter i:type=\"SqlFilter\"><SqlExpression>a = @p</SqlExpression>\
             <Parameters>{parameter}</Parameters></Filter>"
        ))
    };
    let long = "a".repeat(32_769);
    for (body, text) in [
        (
            with(value("@p", "int", "5000000000")),
            "The value of '@p' is not of the type int.",
        ),
        (
            with(value("@p", "string", &long)),
            "The Value of '@p' has 32769 bytes; allowed: at most 32768.",
        ),
        (
            rule(&format!(
                "<Filter i:type=\"CorrelationFilter\"><Label>{long}</Label></Filter>"
            )),
            "The Label of 'r' has 32769 bytes; allowed: at most 32768.",
        ),
        (
            rule("<Filter i:type=\"TrueFilter\"/><Action i:type=\"SqlRuleAction\"/>"),
            "The action of the rule 'r' has no 'SqlExpression'.",
        ),
    ] {
        let refused = admin.put(&format!("{RULES}/r"), &body);
        assert_contains(refused.refusal(400), text);
    }
}

#[test]
fn an_invalid_rule_description_is_refused() {
    let (_bus, admin) = Bus::administered();
    let with = |filter: &str| rule(&format!("<Filter i:type=\"SqlFilter\">{filter}</Filter>"));
    let long = "a".repeat(1025);
    for (body, text) in [
        (
            rule(""),
            "has no known type; allowed: SqlFilter, TrueFilter, FalseFilter, CorrelationFilter.",
        ),
        (rule("<Filter/>"), "has no known type"),
        (
            rule("<Filter i:type=\"OtherFilter\"/>"),
            "Actual value was OtherFilter.",
        ),
        (
            with(""),
            "The filter of the rule 'r' has no 'SqlExpression'.",
        ),
        (
            with("<SqlExpression>price &lt;</SqlExpression>"),
            "The filter of the rule 'r' cannot be understood: ",
        ),
        (
            with("<SqlExpression>sys.Nothing = 1</SqlExpression>"),
            "cannot be understood",
        ),
        (
            with(&format!("<SqlExpression>{long}</SqlExpression>")),
            "1024",
        ),
        (
            with(&format!(
                "<SqlExpression>a = @p</SqlExpression><Parameters>{}</Parameters>",
                value("@p", "int", "x")
            )),
            "The value of '@p' is not of the type int.",
        ),
        (
            rule("<Filter i:type=\"CorrelationFilter\"><Properties/></Filter>"),
            "has no condition; allowed: at least one property.",
        ),
        (
            rule(&format!(
                "<Filter i:type=\"CorrelationFilter\"><Properties>{}</Properties></Filter>",
                value("a", "base64Binary", "AA==")
            )),
            "allowed: string, int, long, boolean, double, dateTime, duration.",
        ),
        (
            rule("<Filter i:type=\"TrueFilter\"/><Action i:type=\"Other\"/>"),
            "allowed: SqlRuleAction, EmptyRuleAction.",
        ),
        (
            rule(
                "<Filter i:type=\"TrueFilter\"/><Action i:type=\"SqlRuleAction\"><SqlExpression>DROP a</SqlExpression></Action>",
            ),
            "The action of the rule 'r' cannot be understood: ",
        ),
        (queue(""), "allowed: RuleDescription."),
    ] {
        let refused = admin.put(&format!("{RULES}/r"), &body);
        assert_contains(refused.refusal(400), text);
    }
    assert_eq!(admin.get(RULES).expect(200).texts("Name"), ["$Default"]);
    for name in ["a%20b", "a%3Fb", "x".repeat(51).as_str()] {
        admin
            .put(&format!("{RULES}/{name}"), &rule(&sql_filter("a = 1")))
            .refusal(400);
    }
}
