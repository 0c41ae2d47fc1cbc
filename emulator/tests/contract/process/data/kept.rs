//! Stored state beside entities and messages.

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
    let directory = Directory::new();
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

/// As in a container, where the user has no cache directory.
#[test]
fn the_ca_is_kept_in_the_data_directory_without_a_cache_directory() {
    let directory = Directory::new();
    let arguments = [&FREE_PORTS[..], &["--data", directory.path()]].concat();
    let nowhere = [("HOME", ""), ("XDG_CACHE_HOME", ""), ("LOCALAPPDATA", "")];
    let authority = || {
        let process = Process::start_with(&arguments, &nowhere);
        let file = process.ready["ca_certificate"]
            .as_str()
            .expect("it is told");
        assert_eq!(Path::new(file).parent(), Some(&*directory.file("tls")));
        let text = fs::read_to_string(file).expect("it is there");
        kill(process);
        text
    };
    assert_eq!(authority(), authority());
}
