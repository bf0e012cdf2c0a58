class SlugNotNull < ActiveRecord::Migration[6.1]
  def change
    change_column_null :photos, :slug, false
  end
end
