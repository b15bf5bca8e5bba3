// `schemas.mjs BUNDLE`: the JSON Schemas that the conformance suite's bundle holds, by revision, as JSON.
//
// They are neighbours in it, each the value of a variable, and a table by revision follows them, the newest of which is a
// variable too. Like the suite, this mends what is amiss in them: the bounds of a number may be fractions.

import fs from "node:fs";
import vm from "node:vm";

const bundle = fs.readFileSync(process.argv[2], "utf8");
const variables = bundle.slice(bundle.search(/[\w$]+=\{\$schema:`[^`]*`,(definitions|\$defs):/));
const table = /;const [\w$]+=\{((?:(?:"\d{4}-\d\d-\d\d"|\[[\w$]+\]):[\w$]+,?)+)\}/.exec(variables);
const dates = [...bundle.matchAll(/[,; ]([\w$]+)=`(\d{4}-\d\d-\d\d)`/g)].map(([, name, date]) => [name, date]);
const newest = Object.fromEntries(dates.reverse()); // of two variables of a name the first is meant
const schemas = vm.runInNewContext(`const ${variables.slice(0, table.index)}; ({${table[1]}})`, newest);

for (const schema of Object.values(schemas)) {
  const { minimum, maximum, default: preset } = (schema.$defs ?? schema.definitions).NumberSchema?.properties ?? {};
  for (const bound of [minimum, maximum, preset]) {
    if (bound) bound.type = "number";
  }
}

process.stdout.write(JSON.stringify(schemas));
