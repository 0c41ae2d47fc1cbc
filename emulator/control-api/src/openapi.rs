//! The control API as an OpenAPI 3.1 document: this module has the routes, and the types have the schemas of bodies.

mod assertions;
mod configuration;
mod explorations;
mod messages;
mod operation;
mod routes;

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::ErrorAnswer;
pub(crate) use configuration::{queue_settings, rules, subscription_settings, topic_settings};
use operation::Operation;

/// Returns the document.
pub fn document() -> Value {
    let mut description = Description::new();
    routes::describe(&mut description);
    assertions::describe(&mut description);
    explorations::describe(&mut description);
    description.finish()
}

/// The document under construction.
struct Description {
    /// Schemas of answers, in which members that are always present are required.
    answers: SchemaGenerator,
    /// Schemas of requests, in which members with defaults are optional.
    requests: SchemaGenerator,
    tags: Vec<Value>,
    paths: Map<String, Value>,
}

impl Description {
    fn new() -> Self {
        let generator = |contract| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings.contract = contract;
            settings.into_generator()
        };
        Self {
            answers: generator(Contract::Serialize),
            requests: generator(Contract::Deserialize),
            tags: Vec::new(),
            paths: Map::new(),
        }
    }

    /// Begins a group of routes.
    fn group(&mut self, name: &str, description: &str) {
        let tag = json!({ "name": name, "description": description });
        self.tags.push(tag);
    }

    /// Adds a route to the group, with an id that names its function in generated clients. `GET counts` is below the path of
    /// a namespace, `GET /health` is a whole path.
    fn route(&mut self, line: &str, id: &str) -> Operation<'_> {
        let (method, path) = line.split_once(' ').unwrap_or(("GET", line));
        let path = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/$emulator/v1/namespaces/{{namespace}}/{path}"),
        };
        Operation::new(self, &path, method.to_lowercase(), id)
    }

    fn answer<T: JsonSchema>(&mut self) -> Value {
        self.answers.subschema_for::<T>().into()
    }

    fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().into()
    }

    fn finish(mut self) -> Value {
        let error = self.answer::<ErrorAnswer>();
        let mut schemas = self.requests.take_definitions(true);
        schemas.extend(self.answers.take_definitions(true));
        schemas.extend(configuration::schemas());
        schemas.extend(assertions::schemas());
        let refusal = |description: &str| {
            let content = json!({ "application/json": { "schema": error } });
            json!({ "description": description, "content": content })
        };
        let mut unauthorized =
            refusal("401: the client is not on loopback and does not send the control token.");
        let scheme = json!({ "schema": { "const": "Bearer" } });
        unauthorized["headers"] = json!({ "WWW-Authenticate": scheme });
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Control API of servicebus-emulator",
                "version": "1",
                "summary": "Lets tests control the time of the emulator and inspect its state.",
                "description": "Times are RFC 3339 in UTC, durations are in seconds. Every error \
                    response has the same form. Under `/$emulator` the emulator answers unknown \
                    paths with 404 and unknown methods with 405; all other paths belong to the \
                    administration API and the REST API of the service. Every request but those \
                    for health and certificates may also be answered with one of the responses \
                    under `components`. JSON is accepted with any content type.",
                "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
            },
            "servers": [{ "url": "http://localhost:5300" }],
            "security": [{}, { "controlToken": [] }],
            "tags": self.tags,
            "paths": self.paths,
            "components": {
                "parameters": {
                    "Namespace": {
                        "name": "namespace",
                        "in": "path",
                        "required": true,
                        "description": "The name of the namespace, in any case: 1 to 63 letters, \
                            digits, `-`, `_` and `.`, which begin and end with a letter or \
                            digit.",
                        "schema": { "type": "string" },
                    },
                },
                "responses": {
                    "Malformed": refusal("400: the request is not valid HTTP; the emulator closes \
                        the connection."),
                    "Unauthorized": unauthorized,
                    "Forbidden": refusal("403: the request changes state and a web page of an \
                        origin that is not allowed made it; or the client is not on loopback and \
                        the emulator has no control token."),
                    "RequestTimeout": refusal("408: the body of the request did not arrive within \
                        20 s."),
                    "Misdirected": refusal("421: `Host` is not a name of the emulator."),
                },
                "schemas": schemas,
                "securitySchemes": {
                    "controlToken": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "The token of `--control-token`; clients on loopback need \
                            none.",
                    },
                },
            },
        })
    }
}
