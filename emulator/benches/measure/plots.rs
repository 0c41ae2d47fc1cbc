//! Plots the last measurements as bars with their numbers, once for light pages and once for dark ones.

use std::error::Error;
use std::path::PathBuf;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Outcome;
use crate::history::{self, Entry};
use crate::report::say;
use crate::statistics::number;

const WIDTH: u32 = 760;
const TITLE: i32 = 44;
const ROW: i32 = 30;
/// Where bars begin, and how long the longest is.
const BARS: (i32, f64) = (290, 360.0);

/// A plot: its file, its title, and its bars: a label, and the section and name of a number.
struct Plot {
    file: &'static str,
    title: &'static str,
    bars: &'static [(&'static str, &'static str, &'static str)],
}

const PLOTS: [Plot; 4] = [
    Plot {
        file: "start",
        title: "Milliseconds until it is there",
        bars: &[
            (
                "an empty program",
                "Start and size",
                "empty program, start to first line",
            ),
            (
                "the emulator's ready line",
                "Start and size",
                "emulator, start to ready line",
            ),
            ("a test's bus, in process", "A test", "in process"),
            (
                "a test's bus, its own process",
                "A test",
                "in a process of its own",
            ),
        ],
    },
    Plot {
        file: "sends",
        title: "Messages a second, sent one by one and awaited",
        bars: &[
            (
                "Rust, azservicebus",
                "What D31 costs azservicebus",
                "outcomes repeated, one by one, a second",
            ),
            ("Go, azservicebus", "Sends by SDK", "go"),
            ("Java, azure-messaging-servicebus", "Sends by SDK", "java"),
            (
                "JavaScript, @azure/service-bus",
                "Sends by SDK",
                "javascript",
            ),
            ("Python, azure-servicebus", "Sends by SDK", "python"),
        ],
    },
    Plot {
        file: "throughput",
        title: "Messages of 1 KiB a second",
        bars: &[
            (
                "raw TCP echo",
                "Throughput, 1 KiB",
                "raw TCP echo, messages per second",
            ),
            (
                "emulator",
                "Throughput, 1 KiB",
                "emulator, messages per second",
            ),
            (
                "emulator, TLS",
                "TLS and WebSocket, 1 KiB",
                "emulator over TLS, messages per second",
            ),
            (
                "emulator, WebSocket over TLS",
                "TLS and WebSocket, 1 KiB",
                "emulator over WebSocket over TLS, messages per second",
            ),
        ],
    },
    Plot {
        file: "latency",
        title: "Microseconds from sender to receiver, one at a time",
        bars: &[
            (
                "raw round trip, half take less",
                "Latency, 1 KiB",
                "one at a time, raw round trip, p50",
            ),
            (
                "emulator, half take less",
                "Latency, 1 KiB",
                "one at a time, emulator end to end, p50",
            ),
            (
                "raw round trip, 99 % take less",
                "Latency, 1 KiB",
                "one at a time, raw round trip, p99",
            ),
            (
                "emulator, 99 % take less",
                "Latency, 1 KiB",
                "one at a time, emulator end to end, p99",
            ),
        ],
    },
];

/// The colours of a page.
struct Theme {
    name: &'static str,
    page: RGBColor,
    text: RGBColor,
    bar: RGBColor,
}

const THEMES: [Theme; 2] = [
    Theme {
        name: "light",
        page: RGBColor(255, 255, 255),
        text: RGBColor(31, 35, 40),
        bar: RGBColor(9, 105, 218),
    },
    Theme {
        name: "dark",
        page: RGBColor(13, 17, 23),
        text: RGBColor(230, 237, 243),
        bar: RGBColor(68, 147, 248),
    },
];

/// Draws every plot that has measurements.
pub(crate) fn draw() -> Outcome {
    let saved = history::read()?;
    for plot in &PLOTS {
        let bars: Vec<(&str, f64)> = plot
            .bars
            .iter()
            .filter_map(|(label, section, what)| {
                let entry: &Entry = history::last(&saved, section, what)?;
                Some((*label, entry.median))
            })
            .collect();
        if bars.is_empty() {
            say(&format!("{}: nothing was measured", plot.file))?;
            continue;
        }
        for theme in &THEMES {
            say(&draw_one(plot, &bars, theme)?.display().to_string())?;
        }
    }
    Ok(())
}

fn draw_one(plot: &Plot, bars: &[(&str, f64)], theme: &Theme) -> Result<PathBuf, Box<dyn Error>> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/plots");
    std::fs::create_dir_all(directory)?;
    let path = PathBuf::from(format!("{directory}/{}-{}.svg", plot.file, theme.name));
    let height = TITLE + ROW * i32::try_from(bars.len())? + 12;
    let root = SVGBackend::new(&path, (WIDTH, u32::try_from(height)?)).into_drawing_area();
    root.fill(&theme.page)?;
    let text = |size: u32, horizontal: HPos| {
        ("sans-serif", size)
            .into_font()
            .color(&theme.text)
            .pos(Pos::new(horizontal, VPos::Center))
    };
    root.draw_text(plot.title, &text(18, HPos::Left), (16, TITLE / 2))?;
    let longest = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    for (row, (label, value)) in (0..).zip(bars) {
        let middle = TITLE + ROW * row + ROW / 2;
        let end = BARS.0 + (BARS.1 * value / longest).round() as i32;
        root.draw_text(label, &text(14, HPos::Right), (BARS.0 - 10, middle))?;
        let bar = [(BARS.0, middle - 9), (end, middle + 9)];
        root.draw(&Rectangle::new(bar, theme.bar.filled()))?;
        root.draw_text(&number(*value), &text(14, HPos::Left), (end + 8, middle))?;
    }
    root.present()?;
    drop(root);
    Ok(path)
}
