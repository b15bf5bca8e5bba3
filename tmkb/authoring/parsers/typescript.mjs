// Read a JSON list of TypeScript sources, and write a JSON list of the first syntax error of each, or null.
// TSX and TypeScript differ in a few places, so a source has to be one of them.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const ts = createRequire(process.argv[2])('typescript');

function error(source, name) {
  const file = ts.createSourceFile(name, `${source}\nexport {};`, ts.ScriptTarget.Latest);
  const [first] = file.parseDiagnostics;
  if (!first) return null;
  const line = file.getLineAndCharacterOfPosition(first.start).line + 1;
  return `line ${line}: ${ts.flattenDiagnosticMessageText(first.messageText, ' ')}`;
}

const sources = JSON.parse(readFileSync(0, 'utf-8'));
process.stdout.write(JSON.stringify(sources.map((each) => error(each, 'a.ts') && error(each, 'a.tsx'))));
