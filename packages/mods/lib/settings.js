'use strict';
// The settings of mods: a JSON file with a version in the mod's folder, and a migrator.

const fs = require('fs');
const path = require('path');

/** @typedef {import('./info').ModInfo} ModInfo */

class SettingsFile {
  /** Whether files are left unchanged, for checks. */
  static isReadOnly = false;

  /**
   * @param {string} file
   * @param {number} version
   * @param {(from: number | null | undefined, to: number, data?: any) => any} migrate receives null if
   *   there is no file, and undefined if the file has no version
   */
  constructor(file, version, migrate) {
    this.file = file;
    this.version = version;
    this.migrate = migrate;
  }

  /** The settings file of a mod; null if it has none. @param {ModInfo} info @param {(file: string) => any} require */
  static of({ path: folder, options, name }, require) {
    if (!options.settingsVersion) return null;
    const file = path.join(folder, String(options.settingsFile ?? 'module_settings.json'));
    const migrator = path.join(folder, String(options.settingsMigrator ?? 'module_settings_migrator.js'));
    return new SettingsFile(file, options.settingsVersion, (from, to, data) => {
      if (!fs.existsSync(migrator)) {
        throw new Error(`${name}: its settings need ${migrator}, which does not exist`);
      }
      return require(migrator)(from, to, data);
    });
  }

  /**
   * The settings file of a mod for the 2020 proxy, which states its version when it starts. Mods that are single
   * files share a folder.
   * @param {ModInfo} info @param {number} version @param {Function | undefined} migrate
   */
  static withInit({ path: folder, entry }, version, migrate) {
    const name = entry === folder ? 'module_settings.json' : `${path.basename(entry, '.js')}.settings.json`;
    return new SettingsFile(path.join(folder, name), version, (from, to, data) => {
      if (from === null) return {};
      return (from !== undefined && migrate ? migrate(from, to, data) : null) ?? data;
    });
  }

  /** Reads the settings and migrates them to the current version. */
  load() {
    let text;
    try {
      text = fs.readFileSync(this.file, 'utf8').replace(/^\ufeff/, '');
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'ENOENT') throw error;
      return this.migrate(null, this.version);
    }
    let content;
    try {
      content = JSON.parse(text);
    } catch (error) {
      const problem = `${this.file} is not JSON: ${/** @type {Error} */ (error).message}`;
      throw new Error(SettingsFile.isReadOnly ? problem : `${problem}; it was renamed to ${this.#setAside()}`);
    }
    if (typeof content !== 'object' || content === null || content.version === undefined) {
      return this.migrate(undefined, this.version, content);
    }
    return content.version === this.version ? content.data : this.migrate(content.version, this.version, content.data);
  }

  /** Writes the settings. 64-bit integers become digits, which messages accept. @param {any} data */
  save(data) {
    if (SettingsFile.isReadOnly) return;
    const asDigits = (/** @type {string} */ _, /** @type {any} */ value) => (typeof value === 'bigint' ? value.toString() : value);
    const text = JSON.stringify({ version: this.version, data }, asDigits, 4);
    const draft = `${this.file}.${process.pid}.tmp`;
    try {
      fs.writeFileSync(draft, text);
      fs.renameSync(draft, this.file);
    } catch (error) {
      fs.rmSync(draft, { force: true });
      throw error;
    }
  }

  /** Renames a file that cannot be read, so that it is not overwritten. */
  #setAside() {
    let kept = `${this.file}.broken`;
    for (let number = 2; fs.existsSync(kept); number++) kept = `${this.file}.broken${number}`;
    fs.renameSync(this.file, kept);
    return kept;
  }
}

module.exports = { SettingsFile };
