//! Pages of lists, as each client requests them (admin-http.md §10).

use crate::support::*;

fn numbered(count: usize) -> Bus {
    let names: Vec<String> = (0..count).map(|number| format!("q{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Bus::with_queues(&names)
}

/// The addresses in the links of a feed, without those of its entries.
fn links(reply: &AtomReply) -> Vec<String> {
    let head = reply.body.split("<entry").next().unwrap_or_default();
    let links = head.split("<link ").skip(1);
    let href = |link: &str| {
        let href = link.split("href=\"").nth(1).unwrap_or_default();
        href.split('"')
            .next()
            .unwrap_or_default()
            .replace("&amp;", "&")
    };
    links.map(href).collect()
}

/// The titles of the entries, without that of the feed.
fn titles(reply: &AtomReply) -> Vec<&str> {
    reply.texts("title").split_off(1)
}

#[test]
fn a_list_page_links_to_the_next_page() {
    let (_bus, admin) = numbered(203).with_admin();
    let first = admin
        .get("/$Resources/queues?api-version=2021-05")
        .expect(200);
    let type_ = Some("application/atom+xml;type=feed;charset=utf-8");
    assert_eq!(first.header("content-type"), type_);
    assert_eq!(
        (first.value("title"), titles(&first).len()),
        ("Queues", 100)
    );
    let url = format!("https://{HOST}/$Resources/queues?api-version=2021-05");
    assert_eq!(
        links(&first),
        [url.clone(), format!("{url}&$skip=100&$top=100")]
    );
    assert_eq!(first.value("id"), url);
    assert_contains(
        &first.body,
        &format!("<entry xml:base=\"{url}\"><id>https://{HOST}/q000?api-version=2021-05</id>"),
    );
    assert_contains(
        &first.body,
        "<link rel=\"self\" href=\"../q000?api-version=2021-05\"/>",
    );
    assert_contains(
        &first.body,
        "<CountDetails xmlns:d3p1=\"http://schemas.microsoft.com/netservices/2011/06/servicebus\">",
    );
    let mut seen = Vec::new();
    let mut path = "/%24Resources/Queues?api-version=2021-05&%24top=90".to_owned();
    loop {
        let page = admin.get(&path).expect(200);
        seen.extend(titles(&page).into_iter().map(str::to_owned));
        match links(&page).get(1) {
            Some(next) => path = next.split(HOST).nth(1).expect("our host").to_owned(),
            None => break,
        }
    }
    let all: Vec<String> = (0..203).map(|number| format!("q{number:03}")).collect();
    assert_eq!(seen, all);
}

#[test]
fn a_list_page_may_start_anywhere_and_be_empty() {
    let (_bus, admin) = numbered(3).with_admin();
    for (query, names) in [
        ("?$skip=0&$top=100", &["q000", "q001", "q002"] as &[&str]),
        ("?&$top=2&$skip=1", &["q001", "q002"]),
        ("?%24skip=2", &["q002"]),
        ("?$skip=3&$top=100", &[]),
        ("?$skip=4000000000", &[]),
        ("?$top=0", &[]),
        ("?$top=5000&enrich=False", &["q000", "q001", "q002"]),
    ] {
        let page = admin.get(&format!("/$Resources/queues{query}")).expect(200);
        assert_eq!(titles(&page), names, "{query}");
        assert_eq!(links(&page).len(), 1, "{query}");
    }
    for (query, name, value) in [
        ("?$skip=-1&$top=-1", "skip", "-1"),
        ("?$top=many", "top", "many"),
        ("?$skip=", "skip", ""),
    ] {
        let refused = admin.get(&format!("/$Resources/queues{query}"));
        let text = format!(
            "Parameter '{name}' should be non-negative integer.&#13;\nParameter name: {name}&#13;\n\
             Actual value was {value}."
        );
        assert_eq!(refused.refusal(400), text, "{query}");
    }
    let none = admin.get("/$resources/TOPICS/").expect(200);
    assert_eq!((none.value("title"), titles(&none).len()), ("Topics", 0));
}

#[test]
fn the_next_link_of_a_filtered_list_keeps_the_filter() {
    let (_bus, admin) = Bus::with_queues(&["a1", "b", "a2"]).with_admin();
    let query = "?$filter=startswith(path,+'a')+eq+true&$top=1&api-version=2021-05";
    let first = admin.get(&format!("/$Resources/queues{query}")).expect(200);
    assert_eq!(titles(&first), ["a1"]);
    let next = links(&first).remove(1);
    let next = next.split(HOST).nth(1).expect("our host");
    let second = admin.get(next).expect(200);
    assert_eq!((titles(&second), links(&second).len()), (vec!["a2"], 1));
}

#[test]
fn lists_are_of_one_kind_and_in_the_order_of_names() {
    let (_bus, admin) = Bus::with_queues(&["b", "A", "c"]).with_admin();
    for name in ["t2", "T1"] {
        admin.create(&format!("/{name}"), &topic_entry(""));
    }
    for name in ["y", "X"] {
        admin.create(&format!("/t1/Subscriptions/{name}"), &subscription(""));
    }
    assert_eq!(
        titles(&admin.get("/$Resources/queues").expect(200)),
        ["A", "b", "c"]
    );
    assert_eq!(
        titles(&admin.get("/$Resources/topics").expect(200)),
        ["T1", "t2"]
    );
    let listed = admin
        .get("/t1/subscriptions/?api-version=2021-05")
        .expect(200);
    assert_eq!(
        (listed.value("title"), titles(&listed)),
        ("Subscriptions", vec!["X", "y"])
    );
    let url = format!("https://{HOST}/t1/subscriptions/");
    let ids = ["", "X", "y"].map(|name| format!("{url}{name}?api-version=2021-05"));
    assert_eq!(
        listed.texts("id"),
        ids,
        "older clients take names from them"
    );
    let rules = admin
        .get("/t1/Subscriptions/x/rules?api-version=2021-05")
        .expect(200);
    assert_eq!(
        (rules.value("title"), titles(&rules)),
        ("Rules", vec!["$Default"])
    );
    let id = format!("https://{HOST}/t1/Subscriptions/x/rules/$Default?api-version=2021-05");
    assert_eq!(rules.texts("id")[1], id);
    let link = "<link rel=\"self\" href=\"rules/$Default?api-version=2021-05\"/>";
    assert_contains(&rules.body, link);
    let topic = admin.get("/t1").expect(200);
    for list in [&listed, &rules] {
        assert_eq!(list.header("etag"), topic.header("etag"));
    }
    let some = admin.get("/t1/Subscriptions?$skip=1&$top=1").expect(200);
    assert_eq!(titles(&some), ["y"]);
}

#[test]
fn lists_support_the_filters_of_old_clients() {
    let (bus, admin) = Bus::with_queues(&["alpha", "Alpine", "beta"]).with_admin();
    admin.create("/topic", &topic_entry(""));
    admin.create("/topic/Subscriptions/audit", &subscription(""));
    let mut peer = bus.client();
    peer.send_to("beta", &Message::new("m"));
    for (filter, names) in [
        (
            "startswith(path,%20'alp')%20eq%20true",
            &["alpha", "Alpine"] as &[&str],
        ),
        ("startswith(path,+'alp')+eq+false", &["beta"]),
        ("messageCount%20Gt%200", &["beta"]),
        (
            "messageCount%20ge%200%20and%20path%20eq%20'ALPHA'",
            &["alpha"],
        ),
        (
            "path%20eq%20'beta'%20or%20path%20eq%20'alpha'",
            &["alpha", "beta"],
        ),
        (
            "createdAt%20gt%20datetime'2020-01-01T00:00:00Z'",
            &["alpha", "Alpine", "beta"],
        ),
        (
            "accessedAt%20Lt%20'2000-01-01T00:00:00'",
            &["alpha", "Alpine"],
        ),
        ("", &["alpha", "Alpine", "beta"]),
    ] {
        let path = format!("/$Resources/Queues?api-version=2013-10&timeout=60&$filter={filter}");
        assert_eq!(titles(&admin.get(&path).expect(200)), names, "{filter}");
    }
    let listed = admin
        .get("/topic/Subscriptions?$filter=startswith(name,'aud')")
        .expect(200);
    assert_eq!(titles(&listed), ["audit"]);
    let refused = admin.get("/$Resources/queues?$filter=colour%20eq%20'red'");
    let text = "Invalid Filter. The specified property 'colour' does not exist or is not allowed.&#13;\n\
                Parameter name: propertyName&#13;\nActual value was colour.";
    assert_eq!(refused.refusal(400), text);
    assert_starts_with(
        admin.get("/$Resources/queues?$filter=path").refusal(400),
        "Invalid Filter. ",
    );
}
