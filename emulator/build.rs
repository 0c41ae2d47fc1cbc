//! Writes the description of the control API as the program contains it: without indentation, and packed for the executable,
//! which would carry ten times as much of it otherwise. Links the executable for Linux.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=openapi.json");
    let description = std::fs::read_to_string("openapi.json")?;
    let lines = description
        .lines()
        .flat_map(|line| [line.trim_start(), "\n"]);
    let out = std::env::var("OUT_DIR")?;
    link();
    write(Path::new(&out), &lines.collect::<String>())
}

/// Links the executable for Linux at a fixed address, as Go does: the 9,000 relocations of one that can be loaded anywhere
/// would take 213 KB and a fiftieth of a start. A static program keeps them in 3 KB (`image/flags`).
fn link() {
    let of_target =
        |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    let is_static = of_target("FEATURE")
        .split(',')
        .any(|feature| feature == "crt-static");
    if of_target("OS") == "linux" && of_target("ENV") == "gnu" && !is_static {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

#[cfg(not(feature = "cli"))]
fn write(out: &Path, description: &str) -> Result<(), Box<dyn Error>> {
    Ok(std::fs::write(out.join("openapi.json"), description)?)
}

/// Packs it by gzip.
#[cfg(feature = "cli")]
fn write(out: &Path, description: &str) -> Result<(), Box<dyn Error>> {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(description.as_bytes())?;
    Ok(std::fs::write(
        out.join("openapi.json.gz"),
        encoder.finish()?,
    )?)
}
