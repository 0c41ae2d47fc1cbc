//! The output for code that insists on `*.servicebus.windows.net`; `--print-env az`: the lines that point `az` at an
//! emulator; `import`: a configuration on standard output, what it leaves out on standard error.

use std::fs::File;
use std::io;

use crate::support::*;

const TWO: &str = r#"{"UserConfig":{"Namespaces":[
    {"Name":"Shop","Queues":[]},
    {"Name":"depot","Queues":[],"Emulator":{
        "Keys":[{"Name":"worker","Key":"a key","Claims":["Listen"]}],"Address":"127.0.0.9"}}]}}"#;

#[test]
fn client_settings_prints_name_ports_connection_string_and_ca() {
    let temporary = TemporaryDirectory::unused();
    let directory = temporary.path();
    let ca_file = format!("{directory}/ca.pem");
    let arguments = ["client-settings", "--tls-directory", directory];
    let text = printed(&arguments);
    for part in [
        "Run the emulator with --https-port 443.",
        "\n  127.0.0.1 sbemulatorns.servicebus.windows.net\n",
        "\n  5671 for AMQP: 127.0.0.1:5671\n",
        "\n  443 for administration and WebSockets: 127.0.0.1:443\n",
        "\n  Endpoint=sb://sbemulatorns.servicebus.windows.net;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE\n",
        &format!("export SSL_CERT_FILE={ca_file} "),
        &format!("export REQUESTS_CA_BUNDLE={ca_file} "),
        &format!("export NODE_EXTRA_CA_CERTS={ca_file} "),
        &format!("cat {ca_file} >> \"$(python3 -m certifi)\"\n"),
        &format!(
            "export JAVA_TOOL_OPTIONS=\"-Djavax.net.ssl.trustStore={directory}/ca.p12 -Djavax.net.ssl.trustStorePassword=changeit\"\n"
        ),
    ] {
        assert_contains(&text, part);
    }
    // For other names an emulator writes a file of its run, which these commands cannot name.
    let named = [&arguments[..], &["--tls-name", "bus.example.com"]].concat();
    assert_eq!(printed(&named), text);
    // It is created now, so that the printed lines work before the emulator runs.
    let certificate = std::fs::read_to_string(&ca_file).expect("it is made");
    assert_starts_with(&certificate, "-----BEGIN CERTIFICATE-----");
}

#[test]
fn client_settings_names_each_option_without_which_no_port_of_them_is_open() {
    let temporary = TemporaryDirectory::unused();
    let directory = temporary.path();
    for without in [["--amqp-port", "0"], ["--amqps-port", "off"]] {
        let arguments = ["client-settings", "--tls-directory", directory];
        let text = printed(&[&arguments[..], &without].concat());
        let needed = "Run the emulator with --amqps-port 5671 --https-port 443.\n";
        assert_starts_with(&text, needed);
    }
}

#[test]
fn client_settings_prints_the_text_of_the_readme() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(readme).expect("there is one");
    let command = "```text\n$ servicebus-emulator client-settings --https-port 443\n";
    let (_, shown) = readme.split_once(command).expect("it is shown");
    let (shown, _) = shown.split_once("```").expect("it ends");
    let temporary = TemporaryDirectory::unused();
    let directory = temporary.path();
    let arguments = ["client-settings", "--https-port", "443"];
    let text = printed(&[&arguments[..], &["--tls-directory", directory]].concat());
    let shown = shown.replace("/home/me/.cache/servicebus-emulator", directory);
    assert_eq!(text, shown);
}

#[test]
fn client_settings_prints_every_namespace_at_the_given_ports() {
    let file = TemporaryFile::new(TWO);
    let temporary = TemporaryDirectory::unused();
    let directory = temporary.path();
    let text = printed(&[
        "client-settings",
        "--config",
        file.path(),
        "--host",
        "0.0.0.0",
        "--https-port",
        "8443",
        "--tls-directory",
        directory,
    ]);
    for part in [
        "127.0.0.1 shop.servicebus.windows.net\n",
        "127.0.0.1:8443; connections must be redirected there\n",
        "127.0.0.9 depot.servicebus.windows.net\n",
        "SharedAccessKeyName=worker;SharedAccessKey=a key\n",
    ] {
        assert_contains(&text, part);
    }
    assert!(!text.contains("must be run with"), "{text}");
}

#[test]
fn client_settings_fails_for_an_invalid_configuration_or_host() {
    let file = TemporaryFile::new(r#"{"UserConfig":{}}"#);
    for (arguments, code) in [
        (["client-settings", "--config", file.path()], 1),
        (["client-settings", "--host", "nowhere.invalid"], 3),
        (["client-settings", "--http-port", "many"], 2),
    ] {
        failure(code, &arguments);
    }
}

#[test]
fn print_env_az_prints_the_address_of_the_emulator() {
    let temporary = TemporaryDirectory::unused();
    let directory = temporary.path();
    let arguments = [
        "--print-env",
        "az",
        "--https-port",
        "8443",
        "--tls-directory",
        directory,
    ];
    let text = printed(&arguments);
    for line in [
        "export AZURE_CONFIG_DIR=\"$(mktemp -d)\"",
        &format!("export REQUESTS_CA_BUNDLE={directory}/ca.pem"),
        "az cloud register -n sbemu --endpoint-resource-manager https://localhost:8443",
        "az cloud set -n sbemu",
        "az login --service-principal -u any -p any --tenant any",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line:?} is not in\n{text}"
        );
    }
    for more in [&["--tls-name", "bus.example.com"][..], &["client-settings"]] {
        let arguments = [more, &arguments[..]].concat();
        assert_eq!(printed(&arguments), text, "{arguments:?}");
    }
}

#[test]
fn print_env_az_without_an_https_port_is_refused() {
    for port in [&[][..], &["--https-port", "0"]] {
        let text = failure(2, &[&["--print-env", "az"][..], port].concat());
        assert_contains(&text, "--https-port");
    }
}

#[test]
fn an_imported_template_is_a_configuration_that_check_accepts() {
    let output = run(&["import", "../fixtures/arm/exported.json"], &[]);
    assert_eq!(output.code, Some(0));
    assert_starts_with(
        &output.stderr,
        "resources[2]: Microsoft.ServiceBus/namespaces/networkrulesets",
    );
    let file = TemporaryFile::new(&output.stdout);
    printed(&["check", file.path()]);
}

#[test]
fn problems_of_an_import_are_reported_with_their_path() {
    let bicep = ["import", "../fixtures/arm/bicep.json"];
    let text = failure(1, &bicep);
    let expected = "resources.bus.name: the parameter prefix has no default and needs a value";
    assert_contains(&text, expected);
    printed(&[&bicep[..], &["--set", "prefix=shop"]].concat());
    failure(2, &[&bicep[..], &["--set", "prefix"]].concat());
    failure(1, &["import", "nowhere.json"]);
    let file = TemporaryFile::new("");
    std::fs::write(file.path(), b"\xff\xfe{\0}\0").expect("a file can be written");
    let expected = format!(
        "{}: is UTF-16, as some editors save it; it must be UTF-8\n",
        file.path()
    );
    for command in ["import", "check"] {
        assert_eq!(failure(1, &[command, file.path()]), expected);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_exits_with_code_1() {
    let file = TemporaryFile::new(TWO);
    let temporary = TemporaryDirectory::unused();
    let directory = ["--tls-directory", temporary.path()];
    for arguments in [
        &["check", file.path()][..],
        &["import", "../fixtures/arm/exported.json"],
        &[&["client-settings"][..], &directory].concat(),
        &[
            &["--print-env", "az", "--https-port", "8443"][..],
            &directory,
        ]
        .concat(),
    ] {
        let full = File::options().write(true).open("/dev/full");
        let ran = run_into(full.expect("it can be written"), arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
        let last = ran.stderr.lines().last().unwrap_or_default();
        assert_starts_with(last, "cannot write to standard output: ");
        // A reader that needs no more closes the pipe.
        let (_, closed) = io::pipe().expect("a pipe");
        assert_eq!(run_into(closed, arguments).code, Some(0), "{arguments:?}");
    }
}
