// What `extensionTestsPath` names: VS Code loads it in its extension host and waits for `run()`. The tests to run are
// those of the file that the variable SCENE names, in order; all are run, and what is not so is told with its stack.

const { readFileSync } = require("node:fs");

exports.run = async function run() {
  const scene = JSON.parse(readFileSync(process.env.SCENE, "utf8"));
  const wrong = [];
  for (const [sentence, test] of Object.entries(require(`./${scene.tests}.js`))) {
    const begun = Date.now();
    try {
      await test(scene);
      console.log(`test: ${sentence} (${Date.now() - begun} ms)`);
    } catch (error) {
      wrong.push(sentence);
      console.error(`test: NOT SO: ${sentence}\n${error.stack}`);
    }
  }
  if (wrong.length > 0) throw new Error(`${wrong.length} are not so: ${wrong.join("; ")}`);
};
