//! JavaScript values to JSON text and back. What is not JSON is a fault that names its place; nothing is guessed,
//! nothing traps (rules F3, F6).

use js_sys::{Array, JSON, Object, Reflect};
use serde_json::{Value, json};
use wasm_bindgen::{JsCast, JsValue};

use crate::domain::fault::Fault;

const MAX_DEPTH: usize = 128;

/// A value as JSON text. `undefined` is as if absent; lone surrogates become U+FFFD.
pub fn from_js(value: &JsValue) -> Result<String, Fault> {
    let mut text = String::new();
    write(value, &mut text, &mut vec!["$".to_owned()])?;
    Ok(text)
}

fn fault(path: &[String], got: &str) -> Fault {
    let path = path.concat();
    Fault::new("host.not_serialisable", format!("{path} is {got}; only JSON can cross into a run.")).detail("path", path).detail("got", got)
}

fn write(value: &JsValue, text: &mut String, path: &mut Vec<String>) -> Result<(), Fault> {
    if path.len() > MAX_DEPTH {
        return Err(fault(path, "nested too deeply, or cyclic"));
    }
    if value.is_null() || value.is_undefined() {
        text.push_str("null");
    } else if let Some(flag) = value.as_bool() {
        text.push_str(if flag { "true" } else { "false" });
    } else if let Some(number) = value.as_f64() {
        return write_number(number, text, path);
    } else if let Some(string) = value.as_string() {
        text.push_str(&serde_json::to_string(&string).unwrap_or_default());
    } else if Array::is_array(value) {
        return write_array(value, text, path);
    } else if value.is_function() {
        return Err(fault(path, "a function"));
    } else if value.is_bigint() {
        return Err(fault(path, "a BigInt; use a number"));
    } else if value.is_symbol() {
        return Err(fault(path, "a symbol"));
    } else if value.is_object() {
        return write_object(value, text, path);
    } else {
        return Err(fault(path, "of an unknown kind"));
    }
    Ok(())
}

fn write_number(number: f64, text: &mut String, path: &[String]) -> Result<(), Fault> {
    if !number.is_finite() {
        return Err(fault(path, "not a finite number"));
    }
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        text.push_str(&(number as i64).to_string());
    } else {
        text.push_str(&serde_json::to_string(&number).unwrap_or_default());
    }
    Ok(())
}

fn write_array(value: &JsValue, text: &mut String, path: &mut Vec<String>) -> Result<(), Fault> {
    let length = Reflect::get(value, &JsValue::from_str("length")).ok().and_then(|length| length.as_f64()).unwrap_or(0.0) as u32;
    text.push('[');
    for index in 0..length {
        if index > 0 {
            text.push(',');
        }
        path.push(format!("[{index}]"));
        let item = Reflect::get_u32(value, index).map_err(|_| fault(path, "a getter that throws"))?;
        write(&item, text, path)?;
        path.pop();
    }
    text.push(']');
    Ok(())
}

fn write_object(value: &JsValue, text: &mut String, path: &mut Vec<String>) -> Result<(), Fault> {
    let object: &Object = value.unchecked_ref();
    let prototype = Reflect::get_prototype_of(value).map_err(|_| fault(path, "an object that hides its kind"))?;
    let plain = prototype.is_null() || Reflect::get_prototype_of(&prototype).is_ok_and(|next| next.is_null());
    if !plain {
        let name = Reflect::get(value, &JsValue::from_str("constructor")).and_then(|constructor| Reflect::get(&constructor, &JsValue::from_str("name")));
        let name = name.ok().and_then(|name| name.as_string()).unwrap_or_else(|| "class".to_owned());
        return Err(fault(path, &format!("a {name}, not a plain object")));
    }
    let keys = Reflect::own_keys(object).map_err(|_| fault(path, "an object whose keys cannot be read"))?;
    text.push('{');
    let mut first = true;
    for key in keys.iter() {
        let Some(name) = key.as_string() else { continue };
        path.push(format!(".{name}"));
        let item = Reflect::get(value, &key).map_err(|_| fault(path, "a getter that throws"))?;
        if !item.is_undefined() {
            if !first {
                text.push(',');
            }
            first = false;
            text.push_str(&serde_json::to_string(&name).unwrap_or_default());
            text.push(':');
            write(&item, text, path)?;
        }
        path.pop();
    }
    text.push('}');
    Ok(())
}

/// JSON text as plain data.
pub fn to_js(json: &str) -> JsValue {
    JSON::parse(json).unwrap_or(JsValue::NULL)
}

/// A fault as the plain object that the package wraps into its error class.
pub fn thrown(fault: Fault) -> JsValue {
    to_js(&json!({ "kind": "fault", "code": fault.code, "message": fault.message, "details": Value::Object(fault.details) }).to_string())
}
