//! `--print-env az`: the lines that point `az` at an emulator.

use super::client_settings::own_directory;
use crate::support::*;

#[test]
fn az_is_told_where_the_emulator_is() {
    let directory = own_directory();
    let arguments = [
        "--print-env",
        "az",
        "--https-port",
        "8443",
        "--tls-directory",
        &directory,
    ];
    let output = run(&arguments, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "export AZURE_CONFIG_DIR=\"$PWD/.az-emulator\"",
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
    std::fs::remove_dir_all(directory).expect("it can be removed");
}

#[test]
fn without_a_port_that_is_known_it_says_so() {
    for port in [&[][..], &["--https-port", "0"]] {
        let output = run(&[&["--print-env", "az"][..], port].concat(), &[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("--https-port"), "{text}");
    }
}
