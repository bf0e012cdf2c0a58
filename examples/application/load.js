// Uses a service all the time, for the test: prints each acknowledged write, and each request that took long.
'use strict';

const { setTimeout: sleep } = require('node:timers/promises');

const pick = (list) => list[Math.floor(Math.random() * list.length)];

// Also looks for what it wrote: the newest photo is the first of the timeline.
async function load(language, { signUp, post, timeline, like }, seconds, clients = 4) {
  const end = Date.now() + seconds * 1000;
  // Clients wait while an alias is paused.
  async function request(call, ...words) {
    const begin = Date.now();
    const answer = await call(...words);
    if (Date.now() - begin >= 20) console.log(`waited ${Date.now() - begin} ${call.name}`);
    return answer;
  }
  async function write(number) {
    const [users, photos] = [[], []];
    for (let n = 0; Date.now() < end; n++) {
      const name = `${language}${number}_${n}`;
      if (users.length < 8) {
        users.push(await request(signUp, name));
        console.log(`user ${users.at(-1)} ${name}`);
      }
      const userId = pick(users);
      photos.push(await request(post, userId, name));
      console.log(`photo ${photos.at(-1)} ${name}`);
      const [newest] = await request(timeline, userId, undefined, 1);
      if (newest.id !== photos.at(-1)) console.log(`missed ${photos.at(-1)}`);
      const [liked, liker] = [pick(photos), pick(users)];
      await request(like, liker, liked);
      console.log(`like ${liked} ${liker}`);
      await sleep(100); // leaves the processors to others
    }
  }
  const report = (error) => console.log(`error ${error.message}`);
  await Promise.all(Array.from({ length: clients }, (_, number) => write(number).catch(report)));
}

module.exports = { load };
