//! One method of one path.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::Description;
use crate::ErrorAnswer;

pub(crate) const NOT_ALLOWED: &str = "A parameter or the body is invalid.";

/// An operation under construction.
pub(crate) struct Operation<'a> {
    description: &'a mut Description,
    path: String,
    method: String,
}

impl<'a> Operation<'a> {
    pub(crate) fn new(
        description: &'a mut Description,
        path: &str,
        method: String,
        id: &str,
    ) -> Self {
        let tag = description.tags.last().map(|tag| tag["name"].clone());
        let methods = description.paths.entry(path).or_insert_with(|| json!({}));
        methods[&method] = json!({
            "operationId": id,
            "tags": Vec::from_iter(tag),
            "parameters": [],
            "responses": {},
        });
        let path = path.to_owned();
        let operation = Self {
            description,
            path,
            method,
        };
        if !operation.path.contains("{namespace}") {
            return operation;
        }
        let namespace = json!({ "$ref": "#/components/parameters/Namespace" });
        operation
            .parameter(namespace)
            .refuses(404, "The namespace or the entity does not exist.")
    }

    fn value(&mut self) -> &mut Value {
        &mut self.description.paths[&self.path][&self.method]
    }

    /// Sets the summary.
    pub(crate) fn summary(mut self, text: &str) -> Self {
        self.value()["summary"] = text.into();
        self
    }

    /// Sets the description, which is longer than the summary.
    pub(crate) fn more(mut self, text: &str) -> Self {
        self.value()["description"] = text.into();
        self
    }

    /// Adds a parameter in the path.
    pub(crate) fn named(self, name: &str, description: &str) -> Self {
        self.parameter(json!({
            "name": name,
            "in": "path",
            "required": true,
            "description": description,
            "schema": { "type": "string" },
        }))
    }

    /// Adds the required query parameter `entity`.
    pub(crate) fn entity(self, description: &str) -> Self {
        self.query("entity", true, json!({ "type": "string" }), description)
    }

    /// Adds a text to the query.
    pub(crate) fn text(self, name: &str, description: &str) -> Self {
        self.query(name, false, json!({ "type": "string" }), description)
    }

    /// Adds an enumeration to the query.
    pub(crate) fn choice(self, name: &str, texts: &[&str], description: &str) -> Self {
        let schema = json!({ "type": "string", "enum": texts });
        self.query(name, false, schema, description)
    }

    /// Adds an integer to the query.
    pub(crate) fn number(self, name: &str, minimum: u32, description: &str) -> Self {
        let schema = json!({ "type": "integer", "minimum": minimum });
        self.query(name, false, schema, description)
    }

    /// Adds the `limit` of a list to the query.
    pub(crate) fn limit(self, maximum: u32, description: &str) -> Self {
        let schema = json!({ "type": "integer", "minimum": 1, "maximum": maximum });
        self.query("limit", false, schema, description)
    }

    /// Adds a boolean to the query, false by default.
    pub(crate) fn flag(self, name: &str, description: &str) -> Self {
        let schema = json!({ "type": "boolean", "default": false });
        self.query(name, false, schema, description)
    }

    /// Adds a parameter to the query.
    pub(crate) fn query(
        self,
        name: &str,
        is_required: bool,
        schema: Value,
        description: &str,
    ) -> Self {
        self.parameter(json!({
            "name": name,
            "in": "query",
            "required": is_required,
            "description": description,
            "schema": schema,
        }))
        .refuses(400, NOT_ALLOWED)
    }

    /// Adds a required JSON body.
    pub(crate) fn takes<T: JsonSchema>(self) -> Self {
        let schema = self.description.request::<T>();
        self.body(true, "application/json", schema)
            .refuses(422, "The body is not an object with these fields.")
    }

    /// Adds a body of another media type.
    pub(crate) fn body(mut self, is_required: bool, media_type: &str, schema: Value) -> Self {
        self.value()["requestBody"] = json!({
            "required": is_required,
            "content": { media_type: { "schema": schema } },
        });
        self.refuses(400, NOT_ALLOWED)
            .refuses(413, "The body is too large.")
    }

    /// Adds a JSON answer.
    pub(crate) fn answers<T: JsonSchema>(self, status: u16, description: &str) -> Self {
        let schema = self.description.answer::<T>();
        self.answers_with(status, description, "application/json", schema)
    }

    /// Adds an answer of another media type.
    pub(crate) fn answers_with(
        mut self,
        status: u16,
        description: &str,
        media_type: &str,
        schema: Value,
    ) -> Self {
        self.value()["responses"][status.to_string()] = json!({
            "description": description,
            "content": { media_type: { "schema": schema } },
        });
        self
    }

    /// Adds an answer without a body.
    pub(crate) fn done(mut self, status: u16, description: &str) -> Self {
        self.value()["responses"][status.to_string()] = json!({ "description": description });
        self
    }

    /// Adds an error response.
    pub(crate) fn refuses(self, status: u16, description: &str) -> Self {
        self.answers::<ErrorAnswer>(status, description)
    }

    /// Removes an answer that other operations of its kind have.
    pub(crate) fn never(mut self, status: u16) -> Self {
        if let Some(responses) = self.value()["responses"].as_object_mut() {
            responses.remove(&status.to_string());
        }
        self
    }

    fn parameter(mut self, parameter: Value) -> Self {
        if let Some(parameters) = self.value()["parameters"].as_array_mut() {
            parameters.push(parameter);
        }
        self
    }
}
