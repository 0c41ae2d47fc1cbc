//! The options of traces from OpenTelemetry's environment variables.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;

use super::parent::Sampler;

/// The default port of an HTTP address.
const DEFAULT_PORT: u16 = 80;
/// OpenTelemetry's default.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a span waits for others; OpenTelemetry's five seconds are long for a person who watches.
const DELAY: Duration = Duration::from_secs(1);
/// The default of `OTEL_SERVICE_NAME`.
const SERVICE_NAME: &str = "servicebus-emulator";

/// The collector, the sampler and the resource of spans: see [`TraceOptions::from_environment`].
#[derive(Clone)]
pub struct TraceOptions {
    pub(super) endpoint: Endpoint,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) timeout: Duration,
    pub(super) delay: Duration,
    pub(super) sampler: Sampler,
    /// The attributes of the resource.
    pub(super) resource: Vec<(String, String)>,
}

/// A parsed HTTP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) port: u16,
    /// Host and port as written.
    pub(super) authority: String,
    pub(super) path: String,
}

impl TraceOptions {
    /// Returns the options in the process's environment; `None` if it names no collector or disables traces. An error names
    /// a variable that cannot be applied.
    pub fn from_environment() -> Result<Option<Self>, String> {
        Self::from_variables(&|name| std::env::var(name).ok())
    }

    pub(super) fn from_variables(
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        // Variables of traces take precedence over those of all signals.
        let own = |name: &str| {
            let names = ["TRACES_", ""].map(|signal| format!("OTEL_EXPORTER_OTLP_{signal}{name}"));
            names.into_iter().find_map(|name| Some((get(&name)?, name)))
        };
        let is =
            |name, value: &str| get(name).is_some_and(|it| it.trim().eq_ignore_ascii_case(value));
        let Some((address, variable)) = own("ENDPOINT") else {
            return Ok(None);
        };
        if is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none") {
            return Ok(None);
        }
        if let Some((protocol, name)) =
            own("PROTOCOL").filter(|(it, _)| it.trim() != "http/protobuf")
        {
            return Err(format!("{name} is {protocol:?}; allowed: http/protobuf"));
        }
        let is_base = !variable.contains("TRACES");
        let milliseconds = |found: Option<(String, String)>, default| match found {
            None => Ok(default),
            Some((value, name)) => match value.trim().parse() {
                Ok(milliseconds) => Ok(Duration::from_millis(milliseconds)),
                Err(_) => Err(format!("{name} is {value:?}; allowed: milliseconds")),
            },
        };
        let delay = "OTEL_BSP_SCHEDULE_DELAY";
        Ok(Some(Self {
            endpoint: Endpoint::read(&variable, address.trim(), is_base)?,
            headers: own("HEADERS").map_or(Ok(Vec::new()), |(text, name)| headers(&name, &text))?,
            timeout: milliseconds(own("TIMEOUT"), TIMEOUT)?,
            delay: milliseconds(get(delay).map(|value| (value, delay.to_owned())), DELAY)?,
            sampler: sampler(get("OTEL_TRACES_SAMPLER"), get("OTEL_TRACES_SAMPLER_ARG"))?,
            resource: resource(get("OTEL_SERVICE_NAME"), get("OTEL_RESOURCE_ATTRIBUTES"))?,
        }))
    }
}

impl fmt::Debug for TraceOptions {
    /// Leaves out the headers, which may have a secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("TraceOptions");
        shown
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Parses a variable; the path of traces is appended if it `is_base` of all signals.
    fn read(variable: &str, text: &str, is_base: bool) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{variable} is {text:?}; allowed: an address as http://localhost:4318, without TLS"
            )
        };
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let (scheme, authority) = (uri.scheme_str(), uri.authority().ok_or_else(wrong)?);
        if scheme != Some("http") || authority.as_str().contains('@') {
            return Err(wrong());
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(DEFAULT_PORT),
            authority: authority.to_string(),
            path: match is_base {
                true => format!("{}/v1/traces", path.trim_end_matches('/')),
                false => path.to_owned(),
            },
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "http://{}{}", self.authority, self.path)
    }
}

/// Parses `name=value,name=value`, each percent-encoded.
fn pairs(variable: &str, text: &str) -> Result<Vec<(String, String)>, String> {
    let decoded = |text: &str| {
        percent_decode_str(text.trim())
            .decode_utf8()
            .map(String::from)
    };
    let entries = text.split(',').filter(|entry| !entry.trim().is_empty());
    let read = entries.map(|entry| {
        let (name, value) = entry.split_once('=')?;
        Some((decoded(name).ok()?, decoded(value).ok()?))
    });
    let read: Option<Vec<_>> = read.collect();
    read.ok_or_else(|| {
        format!("{variable} cannot be read; allowed: name=value with commas between")
    })
}

fn headers(variable: &str, text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let read = pairs(variable, text)?.into_iter().map(|(name, value)| {
        let header = HeaderName::from_str(&name)
            .ok()
            .zip(HeaderValue::from_str(&value).ok());
        header.ok_or_else(|| {
            format!("{variable}: {name:?} is not a header of HTTP, or its value none")
        })
    });
    read.collect()
}

fn sampler(name: Option<String>, argument: Option<String>) -> Result<Sampler, String> {
    let name = name.as_deref().map_or("parentbased_always_on", str::trim);
    let (follows_parent, root) = match name.strip_prefix("parentbased_") {
        Some(root) => (true, root),
        None => (false, name),
    };
    let ratio = match (root, argument) {
        ("always_on", _) | ("traceidratio", None) => 1.0,
        ("always_off", _) => 0.0,
        ("traceidratio", Some(argument)) => {
            let ratio = argument.trim().parse().ok();
            ratio
                .filter(|ratio| (0.0..=1.0).contains(ratio))
                .ok_or_else(|| {
                    format!(
                        "OTEL_TRACES_SAMPLER_ARG is {argument:?}; allowed: a number from 0 to 1"
                    )
                })?
        }
        _ => {
            return Err(format!(
                "OTEL_TRACES_SAMPLER is {name:?}; allowed: always_on, always_off or traceidratio, each also with parentbased_ \
                 before it"
            ));
        }
    };
    Ok(Sampler {
        follows_parent,
        ratio,
    })
}

fn resource(
    name: Option<String>,
    attributes: Option<String>,
) -> Result<Vec<(String, String)>, String> {
    const NAME: &str = "service.name";
    let mut resource = pairs("OTEL_RESOURCE_ATTRIBUTES", &attributes.unwrap_or_default())?;
    if name.is_some() {
        resource.retain(|(key, _)| key != NAME);
    }
    if !resource.iter().any(|(key, _)| key == NAME) {
        let name = name.unwrap_or_else(|| SERVICE_NAME.to_owned());
        resource.push((NAME.to_owned(), name));
    }
    Ok(resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<TraceOptions>, String> {
        let get = |name: &str| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        TraceOptions::from_variables(&get)
    }

    const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");

    #[test]
    fn traces_are_off_without_a_collector_or_when_disabled() {
        for variables in [
            &[][..],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[BASE, ("OTEL_SDK_DISABLED", "TRUE")],
            &[BASE, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert!(
                read(variables).expect("it is legal").is_none(),
                "{variables:?}"
            );
        }
        let on = read(&[BASE, ("OTEL_SDK_DISABLED", "false")]);
        assert!(on.expect("it is legal").is_some());
    }

    #[test]
    fn the_traces_endpoint_takes_precedence_over_the_general_one() {
        let shown = |variables: &[_]| {
            let options = read(variables).expect("it is legal").expect("it is named");
            options.endpoint.to_string()
        };
        assert_eq!(shown(&[BASE]), "http://collector:4318/v1/traces");
        let own = (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "http://[::1]:9/in?a=b",
        );
        assert_eq!(shown(&[BASE, own]), "http://[::1]:9/in?a=b");
        let options = read(&[own]).expect("it is legal").expect("it is named");
        assert_eq!(
            (options.endpoint.host.as_str(), options.endpoint.port),
            ("::1", 9)
        );
    }

    #[test]
    fn headers_sampler_and_resource_are_parsed() {
        let options = read(&[
            BASE,
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key = a%20b , other=c"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "50"),
            ("OTEL_BSP_SCHEDULE_DELAY", "7"),
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=x,team=a%2Cb"),
            ("OTEL_SERVICE_NAME", "bus"),
        ]);
        let options = options.expect("it is legal").expect("it is named");
        let headers = options.headers.iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        assert_eq!(headers, [("x-key", &b"a b"[..]), ("other", b"c")]);
        let times = (options.timeout, options.delay);
        assert_eq!(times, (Duration::from_millis(50), Duration::from_millis(7)));
        let sampler = Sampler {
            follows_parent: true,
            ratio: 0.25,
        };
        assert_eq!(options.sampler, sampler);
        let resource = [("team", "a,b"), ("service.name", "bus")];
        let resource = resource.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(options.resource, resource);
    }

    #[test]
    fn an_invalid_variable_is_reported_by_name() {
        for (name, value) in [
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "https://collector:4318",
            ),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://a@collector"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "no"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b%0D%0Ac: d"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
            ("OTEL_TRACES_SAMPLER", "sometimes"),
            ("OTEL_TRACES_SAMPLER_ARG", "2"),
        ] {
            let ratio = ("OTEL_TRACES_SAMPLER", "traceidratio");
            let error = read(&[(name, value), BASE, ratio]).expect_err(value);
            assert!(error.starts_with(name), "{name} {value}: {error}");
        }
    }
}
