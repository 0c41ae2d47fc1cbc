//! Stored state beside entities and messages.

use servicebus_emulator::auth::{Key, sas};

use super::*;

const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/g";

/// Asks Azure Resource Manager.
fn manage(process: &Process, method: &str, path: &str, body: Option<Json>) -> Json {
    let body = body.map_or_else(String::new, |body| body.to_string());
    let path = format!("{GROUP}/{path}?api-version=2024-01-01");
    let headers = [
        ("Authorization", "Bearer anyone"),
        ("Content-Type", "application/json"),
    ];
    let answer = process
        .http()
        .send(method, &path, &headers, body.as_bytes());
    assert!(answer.status < 300, "{method} {path}: {answer:?}");
    answer.body
}

#[test]
fn keys_management_locks_and_tags_survive_a_kill() {
    let directory = Directory::unused();
    let process = directory.start();
    let namespace = "providers/Microsoft.ServiceBus/namespaces/sbemulatorns";
    let rule = format!("{namespace}/authorizationRules/sender");
    let rights = json!({"properties": {"rights": ["Send"]}});
    manage(&process, "PUT", &rule, Some(rights));
    let list = format!("{rule}/listKeys");
    let keys = manage(&process, "POST", &list, None);
    let lock = format!("{namespace}/providers/Microsoft.Authorization/locks/keep");
    let level = json!({"properties": {"level": "CanNotDelete", "notes": "mine"}});
    let lock_made = manage(&process, "PUT", &lock, Some(level));
    manage(
        &process,
        "PATCH",
        namespace,
        Some(json!({"tags": {"team": "shop"}})),
    );
    kill(process);

    let process = directory.start();
    let again = manage(&process, "POST", &list, None);
    for key in ["primaryKey", "secondaryKey"] {
        assert_eq!(again[key], keys[key]);
    }
    assert_eq!(manage(&process, "GET", &lock, None), lock_made);
    let shown = manage(&process, "GET", namespace, None);
    assert_eq!(shown["tags"]["team"], "shop");
    manage(&process, "DELETE", &lock, None);
    manage(&process, "DELETE", &rule, None);
    kill(process);
    let process = directory.start();
    let rules = manage(
        &process,
        "GET",
        &format!("{namespace}/authorizationRules"),
        None,
    );
    let names = rules["value"].as_array().expect("a list").iter();
    let names = Vec::from_iter(names.map(|rule| rule["name"].clone()));
    assert_eq!(names, ["RootManageSharedAccessKey"]);
    let locks = format!("{namespace}/providers/Microsoft.Authorization/locks");
    assert_eq!(manage(&process, "GET", &locks, None)["value"], json!([]));
}

/// A later start may listen beyond loopback: what the earlier one has decided must not be stored.
#[test]
fn the_default_of_jwt_is_decided_at_each_start() {
    let directory = Directory::unused();
    let process = directory.start();
    let made = |name: &str, body: &str| {
        let path = format!("/$emulator/v1/namespaces/{name}");
        let made = process.http().request("PUT", &path, Some(body));
        assert_eq!(made.status, 201, "{made:?}");
        assert_eq!(made.body["jwt"], "accept");
    };
    made("unset", "");
    let accepting = json!({"UserConfig": {"Namespaces": [
        {"Name": "any", "Emulator": {"Jwt": "accept"}},
    ]}});
    made("accepting", &accepting.to_string());
    kill(process);

    let mut arguments = [&FREE_PORTS[..], &["--data", directory.path()]].concat();
    arguments[0] = "--host=0.0.0.0";
    let process = Process::start_with(&arguments, &[]);
    let namespaces = process.ready["namespaces"].as_array().expect("a list");
    let jwt = |name: &str| {
        let own = namespaces.iter().find(|own| own["name"] == name);
        own.expect("it is stored")["jwt"].clone()
    };
    assert_eq!(jwt("unset"), "refuse");
    assert_eq!(jwt("accepting"), "accept");
}

/// Explorations are numbered from 1 in each process.
#[test]
fn a_run_of_an_exploration_ends_with_its_process() {
    const ALL: &str = "/$emulator/v1/explorations";
    let directory = Directory::unused();
    for _ in 0..2 {
        let process = directory.start();
        let begun = (process.http()).post(
            ALL,
            &json!({"topology": {"queues": ["q"]}, "parties": ["worker"]}),
        );
        assert_eq!((begun.status, &begun.body["id"]), (201, &json!("1")));
        let run = process.http().post(&format!("{ALL}/1/runs"), &Json::Null);
        assert_eq!(run.status, 201, "{run:?}");
        kill(process);
    }
}

/// A parameter or property of a rule.
fn typed(name: &str, type_: &str, text: &str) -> String {
    format!(
        "<KeyValueOfstringanyType><Key>{name}</Key><Value i:type=\"l28:{type_}\" \
         xmlns:l28=\"http://www.w3.org/2001/XMLSchema\">{text}</Value></KeyValueOfstringanyType>"
    )
}

#[test]
fn what_an_administrator_wrote_survives_a_kill_as_it_is_shown() {
    const SHOWN: &str = "<EnableBatchedOperations>false</EnableBatchedOperations>\
        <UserMetadata>mine</UserMetadata><SupportOrdering>false</SupportOrdering>";
    const RULES: &str = "/t/Subscriptions/s/Rules";
    let directory = Directory::unused();
    let file = TemporaryFile::new(&queues("", &[("q", "")]));
    let admin = |process: &Process| {
        let token = sas::sign("sb://localhost/", &Key::well_known(), in_an_hour());
        Admin {
            http: process.http(),
            token: Some(token),
        }
    };
    let process = directory.start_with(&file);
    let writer = admin(&process);
    writer.update("/q", &queue(SHOWN));
    writer.create("/t", &topic_entry(SHOWN));
    writer.create("/t/Subscriptions/s", &subscription(""));
    let values = typed("z", "int", "5") + &typed("a", "dateTime", "2030-01-02T03:04:05");
    let correlation =
        format!("<Filter i:type=\"CorrelationFilter\"><Properties>{values}</Properties></Filter>");
    let parameters = values + &typed("@Z", "long", "6");
    let sql = format!(
        "<Filter i:type=\"SqlFilter\"><SqlExpression>x = @z</SqlExpression><Parameters>{parameters}</Parameters></Filter>\
         <Action i:type=\"SqlRuleAction\"><SqlExpression>SET y = @z</SqlExpression><Parameters>{parameters}</Parameters></Action>"
    );
    let rules = [("correlation", &*correlation), ("sql", &*sql)];
    for (name, filter) in rules {
        let name_element = format!("<Name>{name}</Name>");
        writer.create(
            &format!("{RULES}/{name}"),
            &rule(&(filter.to_owned() + &name_element)),
        );
    }
    let shown = |admin: &Admin| {
        let entities = ["/q", "/t"].map(|path| {
            let reply = admin.get(path).expect(200);
            let names = ["EnableBatchedOperations", "UserMetadata", "SupportOrdering"];
            reply.values(names).map(str::to_owned)
        });
        let rules = rules.map(|(name, _)| {
            let reply = admin.get(&format!("{RULES}/{name}")).expect(200);
            let (_, rule) = reply.body.split_once("<Filter ").expect("a filter");
            rule.split("<CreatedAt>").next().map(str::to_owned)
        });
        (entities, rules)
    };
    let before = shown(&writer);
    assert_eq!(
        before.0,
        [["false", "mine", "false"]; 2].map(|row| row.map(str::to_owned))
    );
    kill(process);
    let process = directory.start_with(&file);
    assert_eq!(shown(&admin(&process)), before);
}

#[test]
fn management_locks_and_tags_of_pruned_resources_are_removed() {
    let directory = Directory::unused();
    let process = directory.start();
    let namespace = "providers/Microsoft.ServiceBus/namespaces/second";
    let queue = "providers/Microsoft.ServiceBus/namespaces/sbemulatorns/queues/pruned";
    let create = |process: &Process| {
        manage(process, "PUT", namespace, Some(json!({})));
        manage(process, "PUT", queue, Some(json!({})));
    };
    create(&process);
    let level = json!({"properties": {"level": "ReadOnly"}});
    for scope in [namespace, queue] {
        let lock = format!("{scope}/providers/Microsoft.Authorization/locks/l");
        manage(&process, "PUT", &lock, Some(level.clone()));
    }
    kill(process);
    let process = Process::start(&["--data", directory.path(), "--prune"]);
    create(&process);
    let locks = "providers/Microsoft.Authorization/locks";
    assert_eq!(manage(&process, "GET", locks, None)["value"], json!([]));
}

/// As in a container, where the user has no cache directory.
const NOWHERE: [(&str, &str); 3] = [("HOME", ""), ("XDG_CACHE_HOME", ""), ("LOCALAPPDATA", "")];
const PRINT_ENV: [&str; 4] = ["--print-env", "az", "--https-port", "8443"];

#[test]
fn the_ca_is_kept_in_the_data_directory_without_a_cache_directory() {
    let directory = Directory::unused();
    let arguments = [&FREE_PORTS[..], &["--data", directory.path()]].concat();
    let authority = || {
        let process = Process::start_with(&arguments, &NOWHERE);
        let file = process.ready["ca_certificate"]
            .as_str()
            .expect("it is told");
        assert_eq!(Path::new(file).parent(), Some(&*directory.file("tls")));
        let text = fs::read_to_string(file).expect("it is there");
        kill(process);
        text
    };
    // Before the first start, which uses it.
    for command in [&["client-settings"][..], &PRINT_ENV] {
        let ran = run(&[command, &["--data", directory.path()]].concat(), &NOWHERE);
        let variable = format!("export REQUESTS_CA_BUNDLE={}/tls/ca.pem", directory.path());
        assert_contains(&ran.stdout, &variable);
    }
    let printed = fs::read_to_string(directory.file("tls/ca.pem")).expect("it is made");
    assert_eq!(authority(), printed);
    assert_eq!(authority(), printed);
}

#[test]
fn print_env_has_a_comment_if_no_file_has_the_ca() {
    let ran = run(&PRINT_ENV, &NOWHERE);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let comment = "\n# No file here for REQUESTS_CA_BUNDLE: save what the emulator answers at /$emulator/v1/ca.pem\n";
    assert_contains(&ran.stdout, comment);
}
