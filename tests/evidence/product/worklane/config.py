import os


class Config:
    SECRET_KEY = os.environ.get("WORKLANE_SECRET", "development")
    SQLALCHEMY_DATABASE_URI = os.environ.get("WORKLANE_DATABASE", "sqlite:///worklane.db")
    BASE_URL = os.environ.get("WORKLANE_URL", "http://localhost:5000")
    PASSWORD_METHOD = "scrypt"
    PAGE_SIZE = 50
    REPORT_CACHE_SECONDS = 600
    MAX_IMPORT_ROWS = 2000
