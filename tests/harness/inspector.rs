//! What a failed test shows in a browser: the emulator that was kept, and the report that was left.
//!
//! They need Chromium; `SERVICEBUS_SKIP_BROWSER=1` leaves them out.

#![cfg(unix)]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde_json::json;
use servicebus_harness::{REPORT_VARIABLE, prelude::*};
use servicebus_test_support::{
    browser::{self, Browser},
    built,
};

use super::keep::FailingTest;

#[test]
fn the_link_of_a_kept_namespace_shows_the_timeline_of_the_message() {
    if built::is_child() {
        return built::run_child(charge_a_bad_order());
    }
    if browser::is_left_out() {
        return;
    }
    let mut test = FailingTest::start("in-process");
    let link = test.rendered("inspector");
    assert!(
        link.ends_with("/#/sbemulatorns/orders/dead-letter/messages/1"),
        "{link}"
    );
    let mut browser = Browser::start(directory("kept"));
    browser.open(&link);
    browser.wait_for_text("Message 1");
    browser.wait_for_text("dead lettered, MaxDeliveryCountExceeded");
    browser.wait_for_text("\"total\": -3");
    drop(browser);
    let mut input = test.child.stdin.take().unwrap();
    input.write_all(b"\n").unwrap();
    assert!(!test.child.wait().unwrap().success());
}

#[test]
fn a_failed_test_leaves_a_report_that_explains_it_without_the_emulator() {
    if built::is_child() {
        return built::run_child(charge_a_bad_order());
    }
    if browser::is_left_out() {
        return;
    }
    let test = built::test();
    let reports = directory("reports");
    let _ = fs::remove_dir_all(&reports);
    let mut child = built::rerun();
    child.env(REPORT_VARIABLE, &reports).stdout(Stdio::null());
    let output = child.output().unwrap();
    assert!(!output.status.success());
    let stderr = String::from_utf8_lossy(&output.stderr);
    let report = reports.join(format!("{}.html", test.replace("::", ".")));
    assert!(stderr.contains(&report.display().to_string()), "{stderr}");

    // Neither the emulator nor the process that it was in lives any more.
    let mut browser = Browser::start(directory("reading"));
    browser.open(&format!("file://{}", report.display()));
    browser.wait_for_text(&format!("{test} failed"));
    for explanation in [
        "expected 1 message completed with message id \"o-17\", found none",
        "tests/harness/inspector.rs:",
        "Message 1",
        "dead lettered, MaxDeliveryCountExceeded",
        "\"total\": -3",
    ] {
        browser.wait_for_text(explanation);
    }
    let lists = browser
        .value("[...document.querySelectorAll('.tree .row')].map((row) => row.innerText).join()");
    assert!(lists.as_str().unwrap().contains("orders"), "{lists}");
    browser.value("location.hash = '#/sbemulatorns/record'");
    browser.wait_for_text("The newest");
    assert_eq!(
        browser.value("document.title"),
        json!("Report of a failed test")
    );
    assert_no_request(&report);
}

#[test]
fn a_test_that_passes_leaves_no_report() {
    if built::is_child() {
        return built::run_child(async { ServiceBus::start().await.stop().await });
    }
    let reports = directory("none");
    let output = built::rerun()
        .env(REPORT_VARIABLE, &reports)
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(!reports.exists());
}

/// A report that asks no host explains the failure where there is none; its policy lets it ask none.
fn assert_no_request(report: &Path) {
    let text = fs::read_to_string(report).unwrap();
    let (_, policy) = text.split_once("Content-Security-Policy").unwrap();
    let (policy, _) = policy.split_once('>').unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(!policy.contains("connect-src"), "{policy}");
}

/// A shop whose bank refuses an order until that is dead-lettered, and a test that expects it to be charged.
async fn charge_a_bad_order() {
    let servicebus = ServiceBus::builder()
        .topology(Topology::new().queue(Queue::new("orders").max_delivery_count(2)))
        .start()
        .await;
    let orders = servicebus.queue("orders");
    let order = Message::from(r#"{"total": -3}"#).message_id("o-17");
    orders.send(order).await;
    for _ in 0..2 {
        orders.receive().await.abandon().await;
    }
    assert_dead_lettered!(orders, count = 1).await;
    let within = Duration::from_millis(1);
    let charged = orders.dead_letters();
    assert_completed!(charged, message_id = "o-17", within = within).await;
}

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("inspector-{name}"))
}
