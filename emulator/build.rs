//! Packs the description of the control API for the program, which would carry ten times as much of it otherwise.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "cli")]
    pack("openapi.json")?;
    Ok(())
}

/// Writes a file of the package to the build's directory, packed by gzip.
#[cfg(feature = "cli")]
fn pack(name: &str) -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Write as _;
    use std::path::PathBuf;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    println!("cargo::rerun-if-changed={name}");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&std::fs::read(name)?)?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join(format!("{name}.gz")), encoder.finish()?)?;
    Ok(())
}
