//! The control API as a table: every method and path with its handler.
//!
//! `openapi.json` describes the same table to clients, and a test compares the two.

use std::pin::Pin;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, FromRequestParts as _, Request};
use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};

use super::deadline::deadline;
use super::entities::{Kind, Queues, Subscriptions, Topics};
use super::error::{SelectedNamespace, body_too_long};
use super::{
    Control, MAX_BODY, assertions, changes, clock, connections, counts, description, entities,
    entity_list, explain, explorations, faults, messages, metrics, namespaces, operations, problem,
    process, sessions, timeline,
};
use crate::config::MAX_CONFIG_SIZE;

/// Largest body of messages in JSON, in bytes: three times the base64 of a message that is returned with its body.
const MAX_MESSAGES: usize = 8 * 1024 * 1024;

/// One method at one path.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// In axum's syntax: `{*name}` matches slashes.
    pub(crate) path: &'static str,
    answers: Answers,
}

/// Any handler as one type, with the steps around it.
///
/// Axum wraps a handler several times, and compiles all of that for each type of handler.
#[derive(Clone)]
struct Answers {
    handler: Arc<dyn Fn(Request, Control) -> ResponseFuture + Send + Sync>,
    /// Largest body in bytes.
    most: usize,
    /// Whether it creates, changes or deletes entities.
    changes_entities: bool,
}

type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

impl Route {
    /// Returns axum's router of the path.
    pub(crate) fn method_router(self) -> MethodRouter<Control> {
        let filter = MethodFilter::try_from(self.method);
        let most = self.answers.most;
        let router = on(filter.unwrap_or(MethodFilter::GET), self.answers);
        match most {
            MAX_BODY => router,
            most => router.layer(DefaultBodyLimit::max(most)),
        }
    }
}

impl Answers {
    fn by<T: 'static>(handler: impl Handler<T, Control>) -> Self {
        Self {
            handler: Arc::new(move |request, control| {
                Box::pin(handler.clone().call(request, control))
            }),
            most: MAX_BODY,
            changes_entities: false,
        }
    }

    /// Answers a change of an entity after its links were notified.
    async fn answer(self, request: Request, control: Control) -> Response {
        if !self.changes_entities {
            return (self.handler)(request, control).await;
        }
        let (mut parts, body) = request.into_parts();
        let namespace = match SelectedNamespace::from_request_parts(&mut parts, &control).await {
            Ok(SelectedNamespace(namespace)) => namespace,
            Err(error) => return error.into_response(),
        };
        let response = (self.handler)(Request::from_parts(parts, body), control).await;
        namespace.changes_written().await;
        response
    }
}

impl Handler<(), Control> for Answers {
    type Future = ResponseFuture;

    fn call(self, request: Request, control: Control) -> ResponseFuture {
        let step_timeout = control.shared.options.step_timeout;
        let most = self.most;
        Box::pin(async move {
            let answer = |request| self.answer(request, control);
            let response = deadline(step_timeout, request, answer).await;
            // Axum does not tell the limit.
            match response.status() {
                StatusCode::PAYLOAD_TOO_LARGE => body_too_long(most).into_response(),
                _ => response,
            }
        })
    }
}

pub(crate) fn table() -> Vec<Route> {
    let mut routes = of_process();
    routes.extend(of_namespace());
    routes.extend(of_entities());
    routes
}

/// A path of the process.
macro_rules! v1 {
    ($path:literal) => {
        concat!("/$emulator/v1", $path)
    };
}

/// A path of a namespace.
macro_rules! of_namespace {
    ($path:literal) => {
        concat!("/$emulator/v1/namespaces/{namespace}", $path)
    };
}

fn of_process() -> Vec<Route> {
    vec![
        get("/health", process::health),
        get(v1!("/health"), process::health),
        get(v1!("/openapi.json"), description::show),
        get(v1!("/ca.pem"), process::certificate),
        get(v1!("/hold"), process::hold),
        get(v1!("/metrics"), metrics::show),
        get(v1!("/clock"), clock::show),
        post(v1!("/clock/advance"), clock::advance),
        post(v1!("/clock/freeze"), clock::freeze),
        post(v1!("/clock/resume"), clock::resume),
        post(v1!("/clock/auto"), clock::automate),
        post(v1!("/clock/hold"), clock::hold),
        delete(v1!("/clock/hold/{id}"), clock::release),
        get(v1!("/namespaces"), namespaces::list),
        in_body(
            post(v1!("/namespaces"), namespaces::create_for_test),
            MAX_CONFIG_SIZE as usize,
        ),
        post(v1!("/explorations"), explorations::begin),
        get(v1!("/explorations/{id}"), explorations::report),
        delete(v1!("/explorations/{id}"), explorations::remove),
        post(v1!("/explorations/{id}/runs"), explorations::next),
        post(
            v1!("/explorations/{id}/runs/{number}/result"),
            explorations::end,
        ),
    ]
}

fn of_namespace() -> Vec<Route> {
    let create = put(of_namespace!(""), namespaces::create);
    let send = post(of_namespace!("/messages"), messages::send);
    let resubmit = post(of_namespace!("/messages/resubmit"), messages::resubmit);
    vec![
        in_body(create, MAX_CONFIG_SIZE as usize),
        delete(of_namespace!(""), namespaces::remove),
        post(of_namespace!("/end"), problem::end),
        get(of_namespace!("/topology"), namespaces::topology),
        post(of_namespace!("/reset"), namespaces::reset),
        get(of_namespace!("/clock"), clock::show),
        post(of_namespace!("/clock/advance"), clock::advance),
        post(of_namespace!("/clock/freeze"), clock::freeze),
        post(of_namespace!("/clock/resume"), clock::resume),
        get(of_namespace!("/due"), clock::due),
        post(of_namespace!("/clock/auto"), clock::automate),
        post(of_namespace!("/clock/hold"), clock::hold),
        delete(of_namespace!("/clock/hold/{id}"), clock::release),
        post(of_namespace!("/settled"), clock::settled),
        post(of_namespace!("/assertions"), assertions::check),
        get(of_namespace!("/counts"), counts::show),
        get(of_namespace!("/receivers"), counts::receivers),
        get(of_namespace!("/changes"), changes::follow),
        get(of_namespace!("/connections"), connections::list),
        get(of_namespace!("/entities"), entity_list::list),
        get(of_namespace!("/messages"), messages::list),
        get(of_namespace!("/messages/{number}"), messages::show),
        get(of_namespace!("/messages/{number}/body"), messages::body),
        in_body(send, MAX_MESSAGES),
        in_body(resubmit, MAX_MESSAGES),
        post(of_namespace!("/messages/act"), messages::act),
        get(of_namespace!("/timeline"), timeline::show),
        post(of_namespace!("/explain"), explain::show),
        get(of_namespace!("/faults"), faults::list),
        post(of_namespace!("/faults"), faults::add),
        delete(of_namespace!("/faults"), faults::remove_all),
        get(of_namespace!("/faults/{id}"), faults::show),
        delete(of_namespace!("/faults/{id}"), faults::remove),
        get(of_namespace!("/problem"), problem::find),
        post(of_namespace!("/service-update"), faults::update_service),
        get(of_namespace!("/operations"), operations::show),
        put(of_namespace!("/operations"), operations::record),
        post(of_namespace!("/postponed/release"), operations::release),
        get(of_namespace!("/sessions"), sessions::list),
        post(of_namespace!("/sessions/lose"), sessions::lose),
    ]
}

fn of_entities() -> Vec<Route> {
    let queue = of_namespace!("/queues/{*queue}");
    let topic = of_namespace!("/topics/{*topic}");
    let subscription = of_namespace!("/subscriptions/{*subscription}");
    [
        of_kind::<Queues>(of_namespace!("/queues"), queue),
        of_kind::<Topics>(of_namespace!("/topics"), topic),
        of_kind::<Subscriptions>(of_namespace!("/subscriptions"), subscription),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn of_kind<K: Kind + 'static>(all: &'static str, one: &'static str) -> [Route; 4] {
    [
        get(all, entities::list::<K>),
        get(one, entities::show::<K>),
        changing(put(one, entities::put::<K>)),
        changing(delete(one, entities::delete::<K>)),
    ]
}

pub(crate) fn methods(path: &str) -> Vec<Method> {
    let routes = table().into_iter();
    let here = routes.filter(|route| route.path == path);
    here.map(|route| route.method).collect()
}

fn get<T: 'static>(path: &'static str, handler: impl Handler<T, Control>) -> Route {
    route(Method::GET, path, Answers::by(handler))
}

fn post<T: 'static>(path: &'static str, handler: impl Handler<T, Control>) -> Route {
    route(Method::POST, path, Answers::by(handler))
}

fn put<T: 'static>(path: &'static str, handler: impl Handler<T, Control>) -> Route {
    route(Method::PUT, path, Answers::by(handler))
}

fn delete<T: 'static>(path: &'static str, handler: impl Handler<T, Control>) -> Route {
    route(Method::DELETE, path, Answers::by(handler))
}

fn route(method: Method, path: &'static str, answers: Answers) -> Route {
    Route {
        method,
        path,
        answers,
    }
}

fn changing(mut route: Route) -> Route {
    route.answers.changes_entities = true;
    route
}

/// Sets the maximum size of the body to `most` bytes.
fn in_body(mut route: Route, most: usize) -> Route {
    route.answers.most = most;
    route
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// Returns method and path of every described operation.
    fn described() -> BTreeSet<(String, String)> {
        let description = include_str!("../../openapi.json");
        let description: Value = serde_json::from_str(description).expect("it is JSON");
        let paths = description["paths"]
            .as_object()
            .expect("paths are an object");
        let operations = paths.iter().flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods are an object").keys();
            methods.map(|method| (method.to_uppercase(), path.clone()))
        });
        operations.collect()
    }

    #[test]
    fn every_route_is_described_and_every_description_has_a_route() {
        let table = table();
        let count = table.len();
        let routes = table.into_iter().map(|route| {
            let path = route.path.replace("{*", "{");
            (route.method.to_string(), path)
        });
        let routes: BTreeSet<_> = routes.collect();
        assert_eq!(routes.len(), count, "a route stands twice");
        assert_eq!(routes, described());
    }

    #[test]
    fn every_name_in_a_path_is_a_parameter_of_its_operations() {
        let description = include_str!("../../openapi.json");
        let description: Value = serde_json::from_str(description).expect("it is JSON");
        for (method, path) in described() {
            let operation = &description["paths"][&path][method.to_lowercase()];
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let described: BTreeSet<&str> = parameters
                .map(|parameter| match parameter["$ref"].as_str() {
                    Some(reference) => {
                        let pointer = reference.trim_start_matches('#');
                        description.pointer(pointer).expect("it is defined")
                    }
                    None => parameter,
                })
                .filter(|parameter| parameter["in"] == "path")
                .filter_map(|parameter| parameter["name"].as_str())
                .collect();
            let named = path.split('/').filter_map(|part| part.strip_prefix('{'));
            let named: BTreeSet<&str> = named.map(|name| name.trim_end_matches('}')).collect();
            assert_eq!(described, named, "{method} {path}");
        }
    }
}
