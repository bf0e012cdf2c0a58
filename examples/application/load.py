"""Uses a service all the time, for the test: prints each acknowledged write, and each request that took long."""

import random
import threading
import time


def load(language, sign_up, post, timeline, like, seconds, threads=4):
    """Also looks for what it wrote: the newest photo is the first of the timeline."""
    end = time.monotonic() + float(seconds)
    lock = threading.Lock()

    def say(*words):
        with lock:
            print(*words, flush=True)

    def request(call, *arguments, **options):
        """Clients wait while an alias is paused."""
        begin = time.monotonic()
        answer = call(*arguments, **options)
        waited = round((time.monotonic() - begin) * 1000)
        if waited >= 20:
            say("waited", waited, call.__name__)
        return answer

    def write(number):
        chance = random.Random(number)
        users, photos = [], []
        for n in range(1_000_000):
            if time.monotonic() > end:
                return
            name = f"{language}{number}_{n}"
            if len(users) < 8:
                users.append(request(sign_up, name))
                say("user", users[-1], name)
            user_id = chance.choice(users)
            photos.append(request(post, user_id, name))
            say("photo", photos[-1], name)
            if request(timeline, user_id, limit=1)[0][0] != photos[-1]:
                say("missed", photos[-1])
            photo_id, user_id = chance.choice(photos), chance.choice(users)
            request(like, user_id, photo_id)
            say("like", photo_id, user_id)
            time.sleep(0.1)  # leaves the processors to others

    def run(number):
        try:
            write(number)
        except BaseException as error:  # pylint: disable=broad-except
            say("error", repr(error))

    workers = [threading.Thread(target=run, args=(number,)) for number in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
